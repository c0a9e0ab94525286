"""Ctrl-C as a request to work that waits for a model, so that no step of it is torn in two.

asyncio's own handler raises `KeyboardInterrupt` at the second Ctrl-C, in whatever line is executed then; a run that
waits for its last answers would lose its report there.
"""

import asyncio
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, wait
from itertools import count
from typing import Any, TypeVar

from medexam.event_loop import background_loop

T = TypeVar("T")


def run_interruptibly(work: Coroutine[Any, Any, T]) -> T:
    """Do the work on the loop that carries all traffic with models, and wait for it.

    Each of the first two Ctrl-C cancels the work; what it returns or raises then is what this returns or raises, and
    `KeyboardInterrupt` where it does not listen. Outside the main thread, and where Ctrl-C is ignored, as under
    `nohup`, nothing cancels it.
    """
    loop, numbers, tasks = background_loop().loop, count(1), list[asyncio.Task[T]]()

    async def hold() -> T:
        tasks.append(asyncio.ensure_future(work))
        return await tasks[0]

    def hear(*_: object) -> None:
        if next(numbers) > 2:  # the work does not listen
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
