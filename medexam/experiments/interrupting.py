"""Ctrl-C as a request to a task, so that no step of it is torn in two.

asyncio's own handler cancels at the first Ctrl-C and raises `KeyboardInterrupt` at the second, in whatever line is
executed then; a run that waits for its last answers would lose its report there.
"""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CANCELLING = 2
"""Ctrl-C so often cancels; the next one is a `KeyboardInterrupt`, for a task that does not listen."""


@contextmanager
def cancel_on_interrupt() -> Iterator[None]:
    """Within the block each of the first two Ctrl-C cancels the current task.

    Outside the main thread, and where Ctrl-C is ignored, as under `nohup`, nothing changes.
    """
    task = asyncio.current_task()
    here = threading.current_thread() is threading.main_thread()
    if task is None or not here or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    loop = asyncio.get_running_loop()
    heard = 0

    def hear(_number: int, _frame: FrameType | None) -> None:
        nonlocal heard
        heard += 1
        if heard > CANCELLING:
            raise KeyboardInterrupt
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # wakes a loop that waits for its next event

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
