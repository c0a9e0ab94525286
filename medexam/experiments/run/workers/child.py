"""A worker as a process of its own: carries out the calls that come on standard input, until that ends.

The driver starts it as `python -m`. Standard input ends with the driver, however that ends, and so does this process;
what it has answered by then is in its shard. What it writes on standard error reaches the driver.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from concurrent.futures import Future
from typing import IO, Any

from medexam.errors import EngineError
from medexam.experiments.run.workers.pipe_frames import pack_frame, read_frame, travels
from medexam.experiments.run.workers.worker import Worker
from medexam.library_logging import quiet_dspy
from medexam.serve.network.event_loop import background_loop

_CLOSE_S = 5.0
"""Seconds that a worker without a driver gets to write its last answers and to close its connections."""


class Child:
    """Carries out calls, many at once."""

    def __init__(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._requests = requests
        self._replies = replies
        self._writing = threading.Lock()
        self._worker: Worker = Worker(*read_frame(requests))

    def serve(self) -> None:
        """Carry out calls until the driver is gone or needs it no more."""
        loop = background_loop().loop
        with contextlib.suppress(EOFError):
            while True:
                number, method, arguments, keywords = read_frame(self._requests)
                asyncio.run_coroutine_threadsafe(self._carry_out(number, method, arguments, keywords), loop)
        closing: Future[None] = asyncio.run_coroutine_threadsafe(self._worker.close(), loop)
        with contextlib.suppress(Exception):
            closing.result(_CLOSE_S)

    async def _carry_out(self, number: int, method: str, arguments: Any, keywords: Any) -> None:
        reply: tuple[int, Any, Exception | None]
        try:
            reply = (number, await getattr(self._worker, method)(*arguments, **keywords), None)
        except Exception as error:
            fault = error if travels(error) else EngineError(f"{type(error).__name__}: {error}")
            reply = (number, None, fault)
        # In a thread: a driver that is busy reads late, and questions must not wait for that.
        await asyncio.to_thread(self._reply, reply)

    def _reply(self, reply: tuple[int, Any, Exception | None]) -> None:
        frame = pack_frame(reply)
        # The driver is gone where this fails, and the next read ends.
        with self._writing, contextlib.suppress(OSError):
            self._replies.write(frame)
            self._replies.flush()


def main() -> None:
    """Serve the driver; nothing runs at exit, where libraries would wait or print."""
    # The driver hears Ctrl-C and says when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies, sys.stderr = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "w", buffering=1)
    # What an engine starts gets these two: it may live on, and must not hold the pipes open.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with contextlib.suppress(EOFError), quiet_dspy():
        Child(sys.stdin.buffer, replies).serve()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
