"""One background event loop that carries all traffic with model servers.

HTTP connections, and litellm's own workers, belong to the event loop that opened them. A notebook or a test opens a
new loop for every `asyncio.run`, and synchronous callers have none; so every request crosses to one loop that lives as
long as the process, and the caller's own loop never matters. This module knows coroutines, not requests or models.
"""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")

_BOOKKEEPING = "dspy.clients.execution"
_STOP_S = 5.0
"""Seconds that open connections get to close when the process ends."""


class _Executor(ThreadPoolExecutor):
    """Threads for whatever blocks; DSPy's bookkeeping of a call does not, and takes less time than a thread would."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run what `asyncio.to_thread` submits, with a partial of the function."""
        function = fn.args[0] if isinstance(fn, partial) and fn.args else fn
        if getattr(function, "__module__", None) != _BOOKKEEPING:
            return super().submit(fn, *args, **kwargs)
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class BackgroundLoop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._open: WeakSet[Any] = WeakSet()
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(_Executor(thread_name_prefix="medexam"))
        self._thread = threading.Thread(target=self.loop.run_forever, name="medexam-network", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it, from a thread without a running loop of its own."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the network thread cannot wait for itself; await the asynchronous engine instead")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C ends the waiting alone; without this the work would continue in the other thread.
            future.cancel()
            raise

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and await it from any loop; cancelling the caller cancels the work."""
        # On the network loop itself there is nothing to cross, and a task's cancellation reaches the work directly.
        if asyncio.get_running_loop() is self.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def close_at_exit(self, client: Any) -> None:
        """Await `client.close()` when the process ends, unless it was garbage by then; closing twice is harmless."""
        self._open.add(client)

    def stop(self) -> None:
        """Close what is open, end every task and the thread."""
        if not self._thread.is_alive():
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._wind_down(), self.loop).result(_STOP_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_STOP_S)

    async def _wind_down(self) -> None:
        # Clients first: cancelled tasks could cut off connections that are being closed.
        await asyncio.gather(*(client.close() for client in list(self._open)), return_exceptions=True)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()


_background_loop: BackgroundLoop | None = None
_lock = threading.Lock()


def background_loop() -> BackgroundLoop:
    """Return the process's network loop, started when first asked for."""
    global _background_loop
    with _lock:
        if _background_loop is None:
            _background_loop = BackgroundLoop()
            atexit.register(_background_loop.stop)
        return _background_loop
