"""What is read once within a scope, such as a data set that several steps of one command need."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
V = TypeVar("V")

_memory: ContextVar[dict[tuple[str, Any], Any] | None] = ContextVar("kept", default=None)


@contextmanager
def reads_kept() -> Iterator[None]:
    """Let a function under `keep` read each thing once within the block: what it reads is taken to stay as it is.

    A scope inside another one shares what that holds. Everything is let go at the end of the outermost.
    """
    if _memory.get() is not None:
        yield
        return
    memory: dict[tuple[str, Any], Any] = {}
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)
        # Tasks that were begun within the block hold a copy of its context.
        memory.clear()


def keep(worth: Callable[[V], bool]) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Make a function of hashable arguments hold what it returned, within `reads_kept`, if that is `worth` it."""

    def decorate(read: Callable[P, V]) -> Callable[P, V]:
        @wraps(read)
        def once(*args: P.args, **kwargs: P.kwargs) -> V:
            memory, call = _memory.get(), (read.__qualname__, (args, *kwargs.items()))
            if memory is not None and call in memory:
                hit: V = memory[call]
                return hit
            outcome = read(*args, **kwargs)
            if memory is not None and worth(outcome):
                memory[call] = outcome
            return outcome

        return once

    return decorate
