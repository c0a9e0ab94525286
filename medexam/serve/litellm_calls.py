"""litellm, imported late, kept quiet, and with its errors said in DSPy's words.

Every call goes through litellm once: retries are DSPy's, so litellm and the clients below it have none. This module
knows litellm and its errors; it knows no engine.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from dspy.lm15 import Response, TransportError, response_from_openai_chat
from dspy.lm15 import TimeoutError as CallTimeoutError

CALL_TIMEOUT_S = 600.0
"""Seconds one request may take, waiting in the server's queue included."""

_CHAIN = 10
"""How many causes of an error are looked at."""

ONE_ATTEMPT: dict[str, Any] = {
    "num_retries": 0,
    "max_retries": 0,
    "timeout": CALL_TIMEOUT_S,
    "cache": {"no-cache": True, "no-store": True},
}
"""What every litellm call is given: DSPy retries and caches, nobody else does."""


@cache
def get_litellm() -> Any:
    """The litellm module, imported without its download of price lists and without its advertisements."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    import litellm

    litellm.telemetry = False
    litellm.cache = None
    litellm.suppress_debug_info = True
    return litellm


@contextmanager
def call_errors(model: str) -> Iterator[None]:
    """Say litellm's errors as `dspy.lm15` errors, which DSPy retries or reports."""
    from dspy.clients.engines.litellm_errors import to_lm15_error

    try:
        yield
    except Exception as error:
        fault = _transport_fault(error) or to_lm15_error(error, model=model)
        if fault is error:
            raise
        raise fault from error


def to_response(raw: Any, model: str) -> Response:
    """A chat reply of litellm as a DSPy response; words that a server calls reasoning become a thinking part."""
    body = raw.model_dump()
    for choice in body.get("choices") or ():
        message = choice.get("message") or {}
        extras = message.get("provider_specific_fields") or {}
        thoughts = message.get("reasoning_content") or message.get("reasoning") or extras.get("reasoning")
        if thoughts:
            message["reasoning_content"] = thoughts
    return response_from_openai_chat(body, model=model)


def _transport_fault(error: Exception) -> Exception | None:
    """A lost connection or a timeout, which litellm may report as the server's own HTTP 500."""
    import openai

    fault: Exception | None = None
    link: BaseException | None = error
    for _ in range(_CHAIN):
        if link is None or fault is not None:
            break
        if isinstance(link, openai.APITimeoutError):
            fault = CallTimeoutError(f"no reply within {CALL_TIMEOUT_S:.0f} s")
        elif isinstance(link, openai.APIConnectionError):
            fault = TransportError(f"the connection failed: {link.__cause__ or link}")
        link = link.__cause__ or link.__context__
    return fault
