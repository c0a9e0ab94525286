"""Asking again: which faults that may cure, how long to wait between attempts, and when it is enough.

The only place where a call is repeated: DSPy, litellm and the clients below them each try once. This module knows
faults and time, no servers.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    stop_any,
    stop_before_delay,
    wait_exponential,
    wait_random_exponential,
)

from medexam.errors import CallError, CallTimeoutError, RateLimitError, ServerError, TransportError
from medexam.serve.asking import is_too_long
from medexam.serve.timing import TIMING

T = TypeVar("T")

CURABLE = (TransportError, CallTimeoutError, ServerError, RateLimitError)
"""Faults of the moment: lost connections, timeouts, HTTP 429 and 5xx, replies that are cut off or incomplete. A refusal
of what was asked, such as another HTTP 4xx, would be the same again."""
_OVERLOADED = 503


async def ask_again(
    attempt: Callable[[], Awaitable[T]],
    *,
    timeout_s: float,
    elsewhere: Callable[[], bool] | None = None,
    patience_s: float | None = None,
) -> T:
    """Return the result of the first attempt that succeeds; raises the last fault, or the first that cannot be cured.

    `timeout_s` is what one attempt may take. Where `elsewhere` says that another server is ready, nothing is waited
    for. `patience_s`: seconds after which no wait ends; None: as long as a run waits. No wait ends behind the limit of
    time of the run.
    """
    half: dict[str, float] = {"multiplier": TIMING.first_wait_s / 2, "max": TIMING.longest_wait_s / 2}
    backoff = wait_exponential(**half) + wait_random_exponential(**half)

    def wait(state: RetryCallState) -> float:
        if elsewhere is not None and elsewhere():
            return 0.0
        pause = getattr(state.outcome.exception() if state.outcome else None, "retry_after", None)
        return backoff(state) if pause is None else min(max(float(pause), 0.0), TIMING.longest_hint_s)

    patience = (
        stop_after_delay(TIMING.patience_s + 2 * timeout_s) if patience_s is None else stop_before_delay(patience_s)
    )
    is_enough = stop_any(stop_after_attempt(TIMING.attempts), patience)
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(CURABLE),
        stop=lambda state: is_enough(state) or is_too_long(state.upcoming_sleep),
        wait=wait,
        reraise=True,
    )
    return await retrying(attempt)


def is_refusal(fault: CallError) -> bool:
    """Return whether a server said that it has too much to do."""
    return isinstance(fault, RateLimitError) or fault.status == _OVERLOADED
