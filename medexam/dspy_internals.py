"""What DSPy does not document and is used nevertheless: another minor version of DSPy may break this module alone.

`tests/test_dspy_internals.py` says which part is gone. All other modules use what `dspy`, `dspy.lm15`,
`dspy.teleprompt` and `dspy.utils` offer.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import dspy
from dspy.clients import costs
from dspy.clients.errors import error_boundary
from dspy.dsp.utils.settings import main_thread_config, thread_local_overrides
from dspy.lm15 import Request


def current_settings() -> dict[str, Any]:
    """Return DSPy's settings of this context.

    `dspy.settings` looks both parts up for each of its attributes, which takes five times as long.
    """
    return {**main_thread_config, **thread_local_overrides.get()}


@contextmanager
def evaluating_instead(call: Callable[..., Any]) -> Iterator[None]:
    """Have `call` answer every call of a `dspy.Evaluate` in the block, in all threads, with the same arguments.

    DSPy's optimizers make one themselves and take no other. An optimizer that replaces a module's `forward`, to trace
    its calls, gets DSPy's own.
    """
    own = dspy.Evaluate.__call__

    def answer(evaluate: Any, program: Any, *arguments: Any, **options: Any) -> Any:
        is_traced = "forward" in getattr(program, "__dict__", {})
        return (own if is_traced else call)(evaluate, program, *arguments, **options)

    dspy.Evaluate.__call__ = answer
    try:
        yield
    finally:
        dspy.Evaluate.__call__ = own


@contextmanager
def unpriced_calls() -> Iterator[None]:
    """Leave out the prices of calls in the block that no history keeps.

    For each call DSPy searches thousands of models for the price, which takes half of a client's time.
    """
    own = costs.estimate_cost

    def estimate(*arguments: Any, **options: Any) -> Any:
        return (None, {}) if dspy.settings.disable_history else own(*arguments, **options)

    costs.estimate_cost = estimate
    try:
        yield
    finally:
        costs.estimate_cost = own


def dspy_errors(model: str) -> AbstractContextManager[None]:
    """Return a context that turns `dspy.lm15` errors, and any other, into those that `dspy.LM` raises."""
    boundary: AbstractContextManager[None] = error_boundary(model, unexpected=True)
    return boundary


def chat_request_fields(request: Request) -> dict[str, Any]:
    """Return a request's fields as DSPy writes them for OpenAI's chat dialect, `messages` among them."""
    # Imported here: a run of log-probabilities needs no chat.
    from dspy.clients.lm15_boundary import request_kwargs

    fields: dict[str, Any] = request_kwargs(request, "chat")
    return fields


def read_litellm_error(error: Exception, model: str) -> Exception:
    """Return the `dspy.lm15` error that one of litellm's is; the error itself if it is none of litellm's."""
    # Imported here: it imports litellm, which takes seconds.
    from dspy.clients.engines.litellm_errors import to_lm15_error

    fault: Exception = to_lm15_error(error, model=model)
    return fault
