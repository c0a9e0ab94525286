"""The question whose requests are made: how long it may still wait, and what attempts cost that were thrown away.

The scheduler opens a record for each question; requests, however deep below, find it by their context.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_asking: ContextVar[list[int] | None] = ContextVar("asking", default=None)
_outlasts: ContextVar[Callable[[float], bool]] = ContextVar("outlasts", default=lambda _: False)


@contextmanager
def asking() -> Iterator[list[int]]:
    """Ask a question inside the block; yields the tokens of prompts and of replies that were thrown away."""
    token = _asking.set(discarded := [0, 0])
    try:
        yield discarded
    finally:
        _asking.reset(token)


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
    if (discarded := _asking.get()) is not None:
        discarded[:] = discarded[0] + (prompt_tokens or 0), discarded[1] + (completion_tokens or 0)


def question_id() -> int:
    """Return an id that tells the question whose request this is from others that are being asked; 0 outside any."""
    return id(question) if (question := _asking.get()) is not None else 0
