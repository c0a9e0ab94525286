"""What is read once within a scope, such as a data set that several steps of one command need."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
V = TypeVar("V")

_kept: ContextVar[dict[tuple[str, Any], Any] | None] = ContextVar("kept", default=None)


@contextmanager
def reads_kept() -> Iterator[None]:
    """Within it, a function under `keep` reads each thing once: what it reads is taken to stay as it is.

    A scope inside another one shares what that holds. Everything is let go at the end of the outermost.
    """
    token = _kept.set({} if (kept := _kept.get()) is None else kept)
    try:
        yield
    finally:
        _kept.reset(token)


def keep(worth: Callable[[V], bool]) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Makes a function of hashable arguments hold what it returned, within `reads_kept`, if that is `worth` it."""

    def decorate(read: Callable[P, V]) -> Callable[P, V]:
        @wraps(read)
        def once(*args: P.args, **kwargs: P.kwargs) -> V:
            kept, place = _kept.get(), (read.__qualname__, (args, *kwargs.items()))
            if kept is not None and place in kept:
                held: V = kept[place]
                return held
            found = read(*args, **kwargs)
            if kept is not None and worth(found):
                kept[place] = found
            return found

        return once

    return decorate
