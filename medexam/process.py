"""What the whole process shares: one event loop, logs and bars of libraries, and how often garbage is sought.

HTTP connections, and litellm's own workers, belong to the event loop that opened them. A notebook or a test opens a new
loop for every `asyncio.run`, and synchronous callers have none; so every request crosses to one loop that lives as long
as the process.
"""

import asyncio
import atexit
import gc
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar
from weakref import WeakSet


@contextmanager
def gc_seldom() -> Iterator[None]:
    """Search new objects for cycles seldom within the block.

    Python does whenever 700 more are alive: a quarter of the time of imports, and nearly half of a client's time.
    """
    young, *older = gc.get_threshold()
    gc.set_threshold(max(young, 50_000), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)


@contextmanager
def errors_only(*names: str, level: int = logging.ERROR) -> Iterator[None]:
    """Hold back what these loggers say below an error, or below a `level`, and put their levels back afterwards."""
    levels = {name: logging.getLogger(name).level for name in names}
    for name in levels:
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        for name, before in levels.items():
            logging.getLogger(name).setLevel(before)


class NoBar:
    """Stands in for a bar of tqdm, and shows nothing."""

    _instances: ClassVar[set[Any]] = set()
    """DSPy clears this set of tqdm's when an evaluation begins, which breaks bars that other threads make meanwhile."""

    def __init__(self, iterable: Iterable[Any] = (), **_: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return what a bar does under this name, such as `update` and `close`: nothing."""
        return lambda *_, **__: None


@contextmanager
def quiet_dspy(*modules: str) -> Iterator[None]:
    """Hold back what DSPy says of single questions: a log line for each truncated reply, a bar for each evaluation.

    Of further `modules`, as far as they are imported, bars are held back too: none has a setting that reaches them.
    """
    names = ("dspy.evaluate.evaluate", "dspy.utils.parallelizer", *modules)
    bars: list[Any] = [(sys.modules[name], sys.modules[name].tqdm) for name in names if name in sys.modules]
    for module, bar in bars:
        # Some import the class, others the package that has it.
        module.tqdm = NoBar if isinstance(bar, type) else SimpleNamespace(tqdm=NoBar)
    try:
        with errors_only("dspy.clients.lm"):
            yield
    finally:
        for module, bar in bars:
            module.tqdm = bar


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hold back transformers' progress bars and log lines, and put its settings back afterwards."""
    import transformers

    logs: Any = transformers.utils.logging
    bars = logs.is_progress_bar_enabled()
    logs.disable_progress_bar()
    try:
        with errors_only("transformers"):
            yield
    finally:
        if bars:
            logs.enable_progress_bar()


T = TypeVar("T")

_STOP_S = 5.0
"""Seconds that open connections get to close when the process ends."""


class BackgroundLoop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._open: WeakSet[Any] = WeakSet()
        self.loop = asyncio.new_event_loop()
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
