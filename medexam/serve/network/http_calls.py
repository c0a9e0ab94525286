"""What an HTTP reply of a server says: its JSON object, or its fault. What is asked is its callers' business."""

import math
import re
import time
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import yaml

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
from medexam.files import UnreadableError, parse_json
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
_LONGEST_TEXT = 2000
"""Characters of an error in plain text that are kept."""
MISFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What is raised where a part of a reply is of another type than the protocol's."""


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    lists = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))
    return {name: re.compile("|".join(patterns), re.IGNORECASE) for name, patterns in lists.items()}


def find_words(kind: str, text: str) -> re.Match[str] | None:
    """Search a text for what servers say in a case of `refusals.yaml`."""
    return _patterns()[kind].search(text)


@contextmanager
def reading_reply() -> Iterator[None]:
    """Raise `ServerError` where a field of a reply has no value that it can have, such as an infinite number."""
    try:
        yield
    except (*MISFORMED, RecursionError) as error:
        raise ServerError(f"the reply cannot be read: {error}") from error


async def reply_object(sending: Awaitable[httpx.Response]) -> dict[str, Any]:
    """Return the JSON object of a reply; raises `CallError`s, also for a fault that a reply of status 200 reports."""
    try:
        reply = await sending
    except httpx.TransportError as error:
        # Over aiohttp a connection that is lost is a `ConnectTimeout` too.
        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            raise CallTimeoutError(f"no reply within {error.request.extensions['timeout']['read']:g} s") from error
        raise TransportError(f"the connection failed: {str(error) or type(error).__name__}") from error
    if not reply.is_success:
        raise http_error(reply)
    if "event-stream" in reply.headers.get("content-type", ""):
        raise InvalidRequestError("the server replies by streaming alone: stream must be set to true")
    with reading_reply():
        document = parse_json(reply.content)
        if not isinstance(document, dict):
            raise TypeError("it is not a JSON object")
    # DSPy's reader takes an empty error for one.
    fault = document.pop("error", None)
    message, code = read_message({"error": fault}) if fault else ("", None)
    number = fault.get("code") if isinstance(fault, Mapping) else None
    if message or number is not None:
        status: int = httpx.codes.UNPROCESSABLE_ENTITY if number is None else httpx.codes.INTERNAL_SERVER_ERROR
        status = number if isinstance(number, int) and httpx.codes.is_error(number) else status
        raise status_error(status, message or "an error without words", code=code)
    return document


def http_error(reply: httpx.Response) -> CallError:
    """Build the error that a reply of another status than 200 is."""
    try:
        message, code = read_message(parse_json(reply.content))
    except UnreadableError:
        plain = reply.headers.get("content-type", "").startswith("text/plain")
        message, code = (" ".join(reply.text.split())[:_LONGEST_TEXT] if plain else ""), None
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
    if isinstance(fault, FilteredError) or find_words("filtered", words):
        return FilteredError(message, status=status)
    if isinstance(fault, AuthError | BillingError | ContextLengthError):
        return fault
    if find_words("too_long", words):
        return ContextLengthError(message, status=status)
    if status == httpx.codes.UNAUTHORIZED or find_words("wrong_key", words):
        return AuthError(message, status=status)
    later = find_words("later", words)
    if fault.retry_after is None and later:
        fault.retry_after = float(later[1])
    passes = isinstance(fault, RateLimitError) and later
    if status == httpx.codes.PAYMENT_REQUIRED or (find_words("no_money", words) and not passes):
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


def read_message(body: Any) -> tuple[str, str | None]:
    """Read what an error says, as OpenAI's API, FastAPI or TGI write it, and its code; empty if it says nothing."""
    detail = next((body[key] for key in ("error", "detail") if body.get(key)), body) if isinstance(body, dict) else None
    code = None
    if isinstance(detail, dict):
        # What a gateway writes of the provider behind it.
        metadata = f" {detail['metadata']}" if detail.get("metadata") else ""
        code = f"{detail.get('code')} {detail.get('type')} {detail.get('innererror') or ''}"
        detail = detail.get("message") or ("an error without words" if metadata else None)
        detail = f"{detail}{metadata}" if isinstance(detail, str) else detail
    if isinstance(detail, list):
        # FastAPI's problems.
        detail = str(detail)[:_LONGEST_TEXT]
    return (detail if isinstance(detail, str) else ""), code
