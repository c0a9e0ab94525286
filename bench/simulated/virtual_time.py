"""An event loop whose clock jumps to the next timer, so that minutes of waiting take no time.

It polls no sockets and starts no threads: all that a simulation waits for are timers and what they set off. Functions
that would go to a thread are called at once.
"""

import asyncio
import random
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")

EPOCH_S = 1_700_000_000.0
"""What `time.time()` says at the beginning."""


_TURN_S = 1e-9


class _Clock(selectors.SelectSelector):
    """A selector that moves the time on instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("the simulation is stuck: nothing is ready and no timer runs")
        # A turn takes a moment, as on any machine: a wait of less than a float can tell would never end otherwise.
        self.now += max(timeout, _TURN_S)
        return []


class _AtOnce(ThreadPoolExecutor):
    """Calls a function where a thread was wanted: a real thread would run beside the simulated time."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop of simulated time, which begins at 0 s."""

    def __init__(self) -> None:
        self._moved = _Clock()
        super().__init__(self._moved)
        self.set_default_executor(_AtOnce())

    def time(self) -> float:
        return self._moved.now


@contextmanager
def _clocks_of(loop: VirtualLoop) -> Iterator[None]:
    """The process's clocks show the loop's time."""
    with (
        patch.object(time, "monotonic", loop.time),
        patch.object(time, "time", lambda: EPOCH_S + loop.time()),
    ):
        yield


def run_virtually(work: Callable[[], Coroutine[Any, Any, T]], seed: int) -> T:
    """The result of a coroutine in simulated time; random numbers, such as a retry's jitter, come from `seed`."""
    state = random.getstate()
    random.seed(seed)
    loop = VirtualLoop()
    try:
        with _clocks_of(loop):
            return loop.run_until_complete(work())
    finally:
        loop.close()
        random.setstate(state)
