"""How long the requests of one question waited in this process for a place, how long one may wait, and what attempts
cost whose replies were thrown away.

The scheduler opens a record for each question, and queues of requests write into it. A server's own queue is not
seen from here: it belongs to the answering.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

Span = tuple[float, float]
"""When a wait began and ended, on the monotonic clock."""


class Waits(list[Span]):
    """The waits of one question."""

    discarded: tuple[int, int] = (0, 0)
    """Tokens of prompts and of replies that were thrown away, since they were broken off."""


_record: ContextVar[Waits | None] = ContextVar("waits", default=None)
_outlasts: ContextVar[Callable[[float], bool] | None] = ContextVar("outlasts", default=None)


@contextmanager
def recorded() -> Iterator[Waits]:
    """Record the waits of all requests that are made inside the block."""
    spans = Waits()
    token = _record.set(spans)
    try:
        yield spans
    finally:
        _record.reset(token)


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
    outlasts = _outlasts.get()
    return outlasts is not None and outlasts(wait_s)


def begin_wait() -> Callable[[], None]:
    """Begin a wait now; what is returned ends it, from any thread."""
    spans, start = _record.get(), time.monotonic()

    def end() -> None:
        if spans is not None:
            spans.append((start, time.monotonic()))

    return end


def note_discarded(prompt_tokens: int | None, completion_tokens: int | None) -> None:
    """Note what a server counted of a reply that nobody reads."""
    if (spans := _record.get()) is not None:
        before = spans.discarded
        spans.discarded = before[0] + (prompt_tokens or 0), before[1] + (completion_tokens or 0)


def question_id() -> int:
    """Return an id that tells the question whose request this is from others that are being asked; 0 outside any
    record.
    """
    return id(spans) if (spans := _record.get()) is not None else 0


def covered_s(spans: Sequence[Span]) -> float:
    """Count the seconds in which at least one request waited: requests that waited together count once."""
    total, covered_until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, covered_until))
        covered_until = max(covered_until, end)
    return total
