"""Asking again: which faults that may cure, how long to wait between attempts, and when it is enough.

The only place where a call is repeated: DSPy, litellm and the clients below them each try once. The scheduler opens a
record for each question; requests, however deep below, find it by their context: how long the question may still wait,
and what attempts cost that were thrown away.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from medexam.errors import CallTimeoutError, RateLimitError, ServerError, TransportError

T = TypeVar("T")

CURABLE = (TransportError, CallTimeoutError, ServerError, RateLimitError)
"""Faults of the moment: lost connections, timeouts, HTTP 429 and 5xx, replies that are cut off or incomplete. A refusal
of what was asked, such as another HTTP 4xx, would be the same again."""
DISCARDED: ContextVar[list[int] | None] = ContextVar("discarded", default=None)
"""Of the question that is being asked: the tokens of prompts and of replies that were thrown away; None outside any."""
_outlasts: ContextVar[Callable[[float], bool]] = ContextVar("outlasts", default=lambda _: False)


@dataclass
class Timing:
    """How often a server is asked again, and how long it is waited for, in seconds: read when a wait begins."""

    attempts: int = 8
    """Enough that of a million calls, of which a quarter meets a fault each time, a handful stays unanswered."""
    first_wait_s: float = 0.5
    """The wait after a fault is drawn between half of this and all of it, doubled with each further fault: a server
    that is away for 20 seconds costs no question."""
    longest_wait_s: float = 16.0
    longest_hint_s: float = 60.0
    """A server that asks for a longer pause by `Retry-After` is asked again after this."""
    patience_s: float = 60.0
    """After this no further attempt begins, beyond the time that two timeouts take."""
    cooldown_s: float = 5.0
    """How long a server is left alone after a failure."""
    probe_silence_s: float = 30.0
    """Silence after which a server that is probed is given up. All that a probe asks is short."""
    notice_s: float = 10.0
    """After which a line says that a first reply is waited for."""
    poll_s: float = 2.0
    """Between two looks into a registry, and what one of its servers may take to be reached."""
    tick_s: float = 0.25
    """Between two looks at a server that was started here."""
    first_pause_s: float = 5.0
    """Before a server that crashed is started again, doubled with each further crash."""
    grace_s: float = 20.0
    """What a server may take to end by itself before its group is killed."""


TIMING = Timing()


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

    limit_s = TIMING.patience_s + 2 * timeout_s if patience_s is None else patience_s
    is_enough = tenacity.stop_any(tenacity.stop_after_attempt(TIMING.attempts), tenacity.stop_before_delay(limit_s))
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(CURABLE),
        stop=lambda state: is_enough(state) or is_too_long(state.upcoming_sleep),
        wait=wait,
        reraise=True,
    )
    return await retrying(attempt)


@contextmanager
def limited(outlasts: Callable[[float], bool]) -> Iterator[None]:
    """Have `outlasts` say inside the block which waits, in seconds, are too long for what is left of the time."""
    token = _outlasts.set(outlasts)
    try:
        yield
    finally:
        _outlasts.reset(token)


def is_too_long(wait_s: float) -> bool:
    """Return whether a wait would end behind the run's limit of time; never without one."""
    return _outlasts.get()(wait_s)


def note_discarded(prompt_tokens: int | None, completion_tokens: int | None) -> None:
    """Note what a server counted of a reply that nobody reads."""
    if (discarded := DISCARDED.get()) is not None:
        discarded[:] = discarded[0] + (prompt_tokens or 0), discarded[1] + (completion_tokens or 0)


def question_id() -> int:
    """Return an id that tells the question whose request this is from others that are being asked; 0 outside any."""
    return id(question) if (question := DISCARDED.get()) is not None else 0
