"""Plain HTTP calls for what litellm does not speak, with their faults said in DSPy's words.

This module knows HTTP and errors; what is asked is its callers' business.
"""

from collections.abc import Awaitable
from typing import Any

import httpx
from dspy.lm15 import LM15Error, ServerError, TransportError
from dspy.lm15 import TimeoutError as CallTimeoutError

from medexam.serve.network.connections import redirect_fault
from medexam.serve.network.endpoints import hide_key


async def reply_object(sending: Awaitable[httpx.Response], what: str) -> dict[str, Any]:
    """The JSON object of a reply; raises `dspy.lm15` errors that open with `what` was asked."""
    try:
        reply = await sending
    except httpx.TimeoutException as error:
        raise CallTimeoutError(f"{what} did not answer in time") from error
    except httpx.TransportError as error:
        raise TransportError(f"{what}: {str(error) or type(error).__name__}") from error
    if reply.status_code != httpx.codes.OK:
        raise _http_fault(reply)
    try:
        body = reply.json()
    except ValueError as error:
        raise ServerError(f"{what}: the reply is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise ServerError(f"{what}: the reply is no JSON object")
    return body


def _http_fault(reply: httpx.Response) -> LM15Error:
    from dspy._vendor.lm15.errors import map_http_error
    from dspy.clients._http import retry_after_seconds

    try:
        body = reply.json()
    except ValueError:
        body = {}
    detail = body.get("error", body) if isinstance(body, dict) else {}
    message = detail.get("message") if isinstance(detail, dict) else None
    said = redirect_fault(reply) or str(message or f"HTTP {reply.status_code}")
    fault: LM15Error = map_http_error(
        reply.status_code,
        hide_key(said, reply.request.headers.get("Authorization", "").removeprefix("Bearer ")),
        retry_after=retry_after_seconds(reply.headers.get("retry-after")),
    )
    return fault
