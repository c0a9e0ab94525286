"""Where DSPy is met: its errors, and what it does not document. Another minor version may break this module alone.

All other modules use what `dspy`, `dspy.lm15`, `dspy.teleprompt` and `dspy.utils` offer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dspy import lm15
from dspy.clients.errors import error_boundary
from dspy.clients.legacy_requests import chat_to_responses
from pydantic import BaseModel

from medexam import errors
from medexam.errors import CallError

_GUIDANCE = "\n\n  To fix:"
"""Opens what DSPy adds to some messages; it adds it again where its error is made."""
_NAMES = {"CallError": "LM15Error", "CallTimeoutError": "TimeoutError"}
"""Our error -> DSPy's of the same meaning where their names differ."""
CALL_ERRORS = (CallError, lm15.LM15Error)
"""What a call of an engine breaks with: one of the user's own may raise DSPy's errors."""
_FIELDS = ("status", "retry_after", "provider", "provider_code", "request_id")


@contextmanager
def dspy_faults() -> Iterator[None]:
    """Raise what a call breaks with as DSPy's error of the same meaning and words."""
    try:
        yield
    except CallError as error:
        names = [_NAMES.get(kind.__name__, kind.__name__) for kind in type(error).__mro__]
        kind = next(getattr(lm15, name) for name in names if hasattr(lm15, name))
        feature = {"feature": error.feature} if issubclass(kind, lm15.CapabilityError) else {}
        raise kind(error.message, **{name: getattr(error, name) for name in _FIELDS}, **feature) from error


@contextmanager
def dspy_errors(model: str) -> Iterator[None]:
    """Raise what a call breaks with, and any other error, as `dspy.LM` would."""
    with error_boundary(model, unexpected=True), dspy_faults():
        yield


def json_schema_format(form: type[BaseModel]) -> dict[str, Any]:
    """Return a model as the `response_format` that DSPy sends for it."""
    described = chat_to_responses({"response_format": form})["text"]["format"]
    return {"type": described.pop("type"), "json_schema": described}


def read_litellm_error(error: Exception, model: str) -> Exception:
    """Return the `CallError` that one of litellm's is; the error itself if it is none of litellm's."""
    # Imported here: it imports litellm, which takes seconds.
    from dspy.clients.engines.litellm_errors import to_lm15_error

    fault: Exception = to_lm15_error(error, model=model)
    if not isinstance(fault, lm15.LM15Error):
        return fault
    ours = {theirs: name for name, theirs in _NAMES.items()}
    names = [ours.get(kind.__name__, kind.__name__) for kind in type(fault).__mro__]
    kind: type[CallError] = next(getattr(errors, name) for name in names if hasattr(errors, name))
    fields = {name: getattr(fault, name) for name in _FIELDS}
    return kind(fault.message.partition(_GUIDANCE)[0], **fields, feature=getattr(fault, "feature", None))
