"""What an HTTP reply of a server says: its JSON object, or its fault.

Statuses alone do not tell: the same HTTP 400 means a wrong key at one provider and a filter at another. Each wording
below is from the named API's documentation or its users' reports. This module knows HTTP, errors and words; what is
asked is its callers' business.
"""

import math
import re
import time
from collections.abc import Awaitable
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from medexam.errors import (
    AuthError,
    BillingError,
    CallError,
    CallTimeoutError,
    ContextLengthError,
    FilteredError,
    InvalidRequestError,
    ProviderError,
    RateLimitError,
    ServerError,
    TransportError,
    UnsupportedModelError,
)
from medexam.inputs import UnreadableError, parse_json
from medexam.serve.network.connections import redirect_fault

_BY_STATUS: dict[int, type[CallError]] = {
    **dict.fromkeys((400, 409, 413, 422), InvalidRequestError),
    404: UnsupportedModelError,
    **dict.fromkeys((401, 403), AuthError),
    402: BillingError,
    **dict.fromkeys((408, 504), CallTimeoutError),
    429: RateLimitError,
}
"""HTTP status -> error; of the others, those from 500 on are server errors."""
_TOO_LONG = re.compile(
    r"context[_ ]length[_ ]exceeded|maximum (context|model) length|max_model_len"  # OpenAI, vLLM
    r"|too large for model with \d+ maximum context"  # Mistral
    r"|when context the overflows|number of tokens to keep from the initial prompt"  # LM Studio
    r"|exceeds? (the (available|model'?s?) )?context|context (size|window) (has been )?exceeded"  # llama.cpp, LM Studio
    r"|prompt is too long: \d+ tokens|input is too long for requested model"  # Anthropic, Bedrock
    r"|input token count .{0,20}exceeds the maximum"  # Gemini
    r"|too many tokens: total",  # Cohere
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"\bcontent_filter(ed)?\b|ResponsibleAIPolicyViolation|content management policy"  # Azure, OpenAI
    r"|\binvalid_prompt\b|content_policy_violation|violating (our|the) usage policy"  # OpenAI
    r"|blocked by content filtering policy|guardrail_intervened"  # Anthropic, Bedrock
    r"|[\"']flagged_input[\"']|[\"']reasons[\"']: \[|(input|prompt|request) (was|were|has been) flagged"  # OpenRouter
    r"|data_?inspection_?failed|content exists risk|violates usage guidelines"  # DashScope, DeepSeek, xAI
    r"|\bcontentFilter\b|considered high risk|PROHIBITED_CONTENT",  # Zhipu, Moonshot, Gemini
    re.IGNORECASE,
)
"""No provider says it by a status of its own: it comes as 400, 403, 422, 451 and 500."""
_NO_MONEY = re.compile(
    r"insufficient_quota|exceeded your current quota"  # OpenAI, Gemini
    r"|credit balance is too low|insufficient (balance|credits|funds)"  # Anthropic, DeepSeek, OpenRouter
    r"|billing hard limit|used all available credits|monthly spending limit",  # OpenAI, xAI, Fireworks
    re.IGNORECASE,
)
_LATER = re.compile(r"retry in (\d+(?:\.\d+)?) ?s", re.IGNORECASE)
"""What Gemini adds where a quota of the minute is used up."""
_WRONG_KEY = re.compile(
    r"api key not valid|API_KEY_INVALID|api key expired"  # Gemini
    r"|security token included in the request is (invalid|expired)|UnrecognizedClientException"  # Bedrock
    r"|invalid (x-)?api[ -]?key|incorrect api key|invalid api token"  # Anthropic, OpenAI, Cohere
    r"|signature we calculated does not match",  # AWS
    re.IGNORECASE,
)
_LONGEST_TEXT = 2000
"""Characters of an error in plain text that are kept."""
MISFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What is raised where a part of a reply is of another type than the protocol's."""


async def reply_object(sending: Awaitable[httpx.Response], source: str) -> dict[str, Any]:
    """Return the JSON object of a reply; raises `CallError`s that open with `source`, which was asked."""
    try:
        reply = await sending
    except httpx.TransportError as error:
        # Over aiohttp a connection that is lost is a `ConnectTimeout` too.
        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            raise CallTimeoutError(f"{source} did not answer in time") from error
        raise TransportError(f"{source}: {str(error) or type(error).__name__}") from error
    if reply.status_code != httpx.codes.OK:
        raise http_error(reply)
    try:
        body = parse_json(reply.content)
    except UnreadableError as error:
        raise ServerError(f"{source}: the reply {error}") from error
    if not isinstance(body, dict):
        raise ServerError(f"{source}: the reply is not a JSON object")
    return body


def http_error(reply: httpx.Response) -> CallError:
    """Build the error that a reply of another status than 200 is."""
    message, code = _read_message(reply)
    message = redirect_fault(reply) or message or f"HTTP {reply.status_code}"
    return status_error(reply.status_code, message, read_pause(reply), code)


def status_error(status: int, message: str, retry_after: float | None = None, code: str | None = None) -> CallError:
    """Build the error for an HTTP status, its words and the provider's `code` of the fault; `retry_after`: seconds to
    wait, None if the server says none.
    """
    kind = _BY_STATUS.get(status, ServerError if httpx.codes.is_server_error(status) else ProviderError)
    return refine(kind(message, status=status, retry_after=retry_after, provider_code=code))


def refine(fault: CallError) -> CallError:
    """Return the fault as what its words say that it is, or as it is."""
    status, message = fault.status, fault.message
    words = f"{message} {fault.provider_code or ''}"
    if isinstance(fault, FilteredError) or _FILTERED.search(words):
        return FilteredError(message, status=status)
    if isinstance(fault, AuthError | BillingError | ContextLengthError):
        return fault
    if _TOO_LONG.search(words):
        return ContextLengthError(message, status=status)
    if status == httpx.codes.UNAUTHORIZED or _WRONG_KEY.search(words):
        return AuthError(message, status=status)
    if fault.retry_after is None and (later := _LATER.search(words)):
        fault.retry_after = float(later[1])
    passes = isinstance(fault, RateLimitError) and _LATER.search(words)
    if status == httpx.codes.PAYMENT_REQUIRED or (_NO_MONEY.search(words) and not passes):
        return BillingError(message, status=status)
    return fault


def read_pause(reply: httpx.Response) -> float | None:
    """Read the seconds to wait from `Retry-After`, which holds a number or a date; None if it says neither."""
    header = reply.headers.get("retry-after", "")
    try:
        seconds = float(header)
        return seconds if 0 <= seconds < math.inf else None
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _read_message(reply: httpx.Response) -> tuple[str, str | None]:
    """Read what an error says, as OpenAI's API, FastAPI or TGI write it, or as plain text, and its code; empty if it
    says nothing.
    """
    try:
        body = parse_json(reply.content)
    except UnreadableError:
        plain = reply.headers.get("content-type", "").startswith("text/plain")
        return (" ".join(reply.text.split())[:_LONGEST_TEXT] if plain else ""), None
    detail = next((body[key] for key in ("error", "detail") if body.get(key)), body) if isinstance(body, dict) else None
    code = None
    if isinstance(detail, dict):
        metadata = f" {detail['metadata']}" if detail.get("metadata") else ""
        code = f"{detail.get('code')} {detail.get('type')} {detail.get('innererror') or ''}{metadata}"
        detail = detail.get("message")
    if isinstance(detail, list):
        detail = "; ".join(_problem(problem) for problem in detail)
    return (detail if isinstance(detail, str) else ""), code


def _problem(problem: Any) -> str:
    """Write one of the problems that FastAPI lists: where, and what."""
    if not isinstance(problem, dict):
        return str(problem)
    field = ".".join(map(str, problem["loc"])) if isinstance(problem.get("loc"), list) else ""
    return f"{field}: {problem.get('msg')}" if field else str(problem.get("msg"))
