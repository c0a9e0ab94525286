"""Work that waits for a model, and Ctrl-C as a request to it, so that no step of it is torn in two.

asyncio's own handler cancels at the first Ctrl-C and raises `KeyboardInterrupt` at the second, in whatever line is
executed then; a run that waits for its last answers would lose its report there.
"""

import asyncio
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, wait
from types import FrameType
from typing import Any, TypeVar

from medexam.event_loop import background_loop

T = TypeVar("T")

_CANCELLING = 2
"""Ctrl-C so often cancels; the next one is a `KeyboardInterrupt`, for work that does not listen."""


def run_interruptibly(work: Coroutine[Any, Any, T]) -> T:
    """Do the work on the loop that carries all traffic with models, and wait for it.

    Each of the first two Ctrl-C cancels the work; what it returns or raises then is what this returns or raises, and
    `KeyboardInterrupt` where it does not listen. Outside the main thread, and where Ctrl-C is ignored, as under
    `nohup`, nothing cancels it.
    """
    loop, signals = background_loop().loop, 0
    tasks: list[asyncio.Task[T]] = []

    async def hold() -> T:
        tasks.append(asyncio.ensure_future(work))
        return await tasks[0]

    def hear(_number: int, _frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > _CANCELLING:
            raise KeyboardInterrupt
        # A task may be cancelled on its own loop only, and the signal arrives in the main thread.
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

    is_heard = threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT))
    old_handler = signal.signal(signal.SIGINT, hear) if is_heard else None
    future = asyncio.run_coroutine_threadsafe(hold(), loop)
    try:
        # Some kernels give the signal to another thread, and then this one hears of it when it wakes.
        while not wait([future], timeout=0.2).done:
            pass
        return future.result()
    except CancelledError:
        raise KeyboardInterrupt from None
    finally:
        if is_heard:
            signal.signal(signal.SIGINT, old_handler)
