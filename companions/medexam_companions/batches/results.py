"""A line of a batch's output or error file: the reply's body, or why there is none."""

from typing import Any

from medexam.errors import CallError, ServerError
from medexam.inputs import UnreadableError, parse_json
from medexam.serve import status_error
from medexam.text import hide_secrets, writable

_OK = 200
_MESSAGE_CHARS = 500
"""Characters of an error that are kept."""


def read_result(line: bytes) -> tuple[str, dict[str, Any] | CallError] | None:
    """Parse a result's line into the request's `custom_id` and the body or the error; None for a line that names no
    request.
    """
    try:
        result = parse_json(line)
    except UnreadableError:
        return None
    if not isinstance(result, dict) or not isinstance(key := result.get("custom_id"), str):
        return None
    response = result.get("response") if isinstance(result.get("response"), dict) else {}
    assert isinstance(response, dict)  # noqa: S101 - for the type checker
    status, body = response.get("status_code"), response.get("body")
    if status == _OK and isinstance(body, dict) and not result.get("error"):
        return key, body
    text = _error_text(result.get("error")) or _error_text(body)
    return key, _fault(text, status if isinstance(status, int) else None)


def no_result(status: str) -> CallError:
    """Build the error for a request that has no line in a batch that ended in this way."""
    return ServerError(f"the batch ended as {status} without a reply to this request")


def _error_text(detail: Any) -> str:
    """Extract the message from an error of whatever form: OpenAI's, vLLM's nested one, or plain text."""
    while isinstance(detail, dict):
        detail = detail.get("error") or detail.get("message") or detail.get("code")
    return " ".join(str(detail or "").split())


def _fault(text: str, status: int | None) -> CallError:
    message = hide_secrets(writable(text))[:_MESSAGE_CHARS] or "the batch gives no reason"
    return status_error(status or 500, message)
