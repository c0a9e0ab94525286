"""Plain HTTP calls for what litellm does not speak, with their faults said in words of our own.

This module knows HTTP and errors; what is asked is its callers' business.
"""

import math
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
    InvalidRequestError,
    ProviderError,
    RateLimitError,
    ServerError,
    TransportError,
)
from medexam.inputs import UnreadableError, parse_json
from medexam.serve.network.connections import redirect_fault
from medexam.serve.network.fault_words import refine

_BY_STATUS: dict[int, type[CallError]] = {
    **dict.fromkeys((400, 404, 409, 413, 422), InvalidRequestError),
    **dict.fromkeys((401, 403), AuthError),
    402: BillingError,
    **dict.fromkeys((408, 504), CallTimeoutError),
    429: RateLimitError,
}
"""HTTP status -> error; of the others, those from 500 on are server errors."""


MOST_SAID = 2000
"""Characters of an error in plain text that are kept."""
MISFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What is raised where a part of a reply is of another type than the protocol's."""


async def reply_object(sending: Awaitable[httpx.Response], source: str) -> dict[str, Any]:
    """Return the JSON object of a reply; raises `CallError`s that open with `source`, which was asked."""
    try:
        reply = await sending
    except httpx.TimeoutException as error:
        raise CallTimeoutError(f"{source} did not answer in time") from error
    except httpx.TransportError as error:
        raise TransportError(f"{source}: {str(error) or type(error).__name__}") from error
    if reply.status_code != httpx.codes.OK:
        raise _http_error(reply)
    try:
        body = parse_json(reply.content)
    except UnreadableError as error:
        raise ServerError(f"{source}: the reply {error}") from error
    if not isinstance(body, dict):
        raise ServerError(f"{source}: the reply is not a JSON object")
    return body


def retry_after_s(header: str | None) -> float | None:
    """Read the seconds to wait from a `Retry-After` header, which holds a number or a date; None if it says neither."""
    if header is None:
        return None
    try:
        seconds = float(header)
        return seconds if 0 <= seconds < math.inf else None
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _http_error(reply: httpx.Response) -> CallError:
    message = redirect_fault(reply) or _message(reply) or f"HTTP {reply.status_code}"
    return status_error(reply.status_code, message, retry_after_s(reply.headers.get("retry-after")))


def _message(reply: httpx.Response) -> str:
    """Read what an error says, as OpenAI's API, FastAPI or TGI write it, or as plain text; empty if it says nothing."""
    try:
        body = parse_json(reply.content)
    except UnreadableError:
        plain = reply.headers.get("content-type", "").startswith("text/plain")
        return " ".join(reply.text.split())[:MOST_SAID] if plain else ""
    detail = next((body[key] for key in ("error", "detail") if body.get(key)), body) if isinstance(body, dict) else None
    if isinstance(detail, dict):
        detail = detail.get("message")
    if isinstance(detail, list):
        detail = "; ".join(_problem(problem) for problem in detail)
    return detail if isinstance(detail, str) else ""


def _problem(problem: Any) -> str:
    """Write one of the problems that FastAPI lists: where, and what."""
    if not isinstance(problem, dict):
        return str(problem)
    field = ".".join(map(str, problem["loc"])) if isinstance(problem.get("loc"), list) else ""
    return f"{field}: {problem.get('msg')}" if field else str(problem.get("msg"))


def status_error(status: int, message: str, retry_after: float | None = None, code: str | None = None) -> CallError:
    """Build the error for an HTTP status, its words and the provider's `code` of the fault; `retry_after`: seconds to
    wait, None if the server says none.
    """
    kind = _BY_STATUS.get(status, ServerError if httpx.codes.is_server_error(status) else ProviderError)
    return refine(kind(message, status=status, retry_after=retry_after, provider_code=code))
