"""Asking again: which faults that may cure, how long to wait between attempts, and when it is enough.

The only place where a call is repeated: DSPy, litellm and the clients below them each try once.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import tenacity

from medexam.errors import CallTimeoutError, RateLimitError, ServerError, TransportError
from medexam.serve.asking import is_too_long
from medexam.serve.timing import TIMING

T = TypeVar("T")

CURABLE = (TransportError, CallTimeoutError, ServerError, RateLimitError)
"""Faults of the moment: lost connections, timeouts, HTTP 429 and 5xx, replies that are cut off or incomplete. A refusal
of what was asked, such as another HTTP 4xx, would be the same again."""


async def ask_again(
    attempt: Callable[[], Awaitable[T]],
    *,
    timeout_s: float,
    elsewhere: Callable[[], bool] = lambda: False,
    patience_s: float | None = None,
) -> T:
    """Return the result of the first attempt that succeeds; raises the last fault, or the first that cannot be cured.

    `timeout_s` is what one attempt may take. Where `elsewhere` says that another server is ready, nothing is waited
    for. `patience_s`: seconds after which no wait ends; None: as long as a run waits. No wait ends behind the limit of
    time of the run.
    """
    half: dict[str, float] = {"multiplier": TIMING.first_wait_s / 2, "max": TIMING.longest_wait_s / 2}
    backoff = tenacity.wait_exponential(**half) + tenacity.wait_random_exponential(**half)

    def wait(state: tenacity.RetryCallState) -> float:
        if elsewhere():
            return 0.0
        pause = getattr(state.outcome.exception() if state.outcome else None, "retry_after", None)
        return backoff(state) if pause is None else min(max(float(pause), 0.0), TIMING.longest_hint_s)

    patience = (
        tenacity.stop_after_delay(TIMING.patience_s + 2 * timeout_s)
        if patience_s is None
        else tenacity.stop_before_delay(patience_s)
    )
    is_enough = tenacity.stop_any(tenacity.stop_after_attempt(TIMING.attempts), patience)
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(CURABLE),
        stop=lambda state: is_enough(state) or is_too_long(state.upcoming_sleep),
        wait=wait,
        reraise=True,
    )
    return await retrying(attempt)
