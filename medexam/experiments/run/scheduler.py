"""Asking the questions of one cell: many in flight, each answer kept as it comes, none lost in an interruption.

It stops when all is asked, when the server is gone, when a limit is reached, and on Ctrl-C. It knows programs
and prediction logs, and neither engines nor scores.
"""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, wait
from contextlib import suppress
from itertools import count, islice
from typing import Any, TypeVar

from dspy.utils.exceptions import (
    LMAuthError,
    LMConfigurationError,
    LMError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
)

from medexam.errors import EngineError, ProgramFaultError, RunFolderError
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.run.spending import Spending
from medexam.experiments.store.logs import PredictionLog
from medexam.predictions import Prediction, Status
from medexam.process import background_loop
from medexam.programs import build_prediction, kept_calls
from medexam.programs.outcome import build_failure, read_both
from medexam.serve.network.retry import DISCARDED, limited

T = TypeVar("T")
_FLUSH_S = 0.5
"""Seconds that a finished prediction waits at most until it is on the disk."""
_GIVE_UP_AFTER = 32
"""Failures in a row after which the server is taken for gone and the rest of the cell stays pending."""
GRACE_S = 5.0
"""Seconds that Ctrl-C waits for the questions in flight; a second one does not wait."""
_BEGUN_AT_ONCE = 64
"""Questions begun in one turn of the event loop. All requests would otherwise wait until the last question is prepared:
1.4 s for 64 servers."""
_HOPELESS = (LMAuthError, LMConfigurationError, LMUnsupportedFeatureError, LMUnsupportedModelError)
"""Faults that no other question would escape."""


async def answer(planned: PlannedCell, question: Any) -> tuple[Prediction, Exception | None, Sequence[int]]:
    """Ask one question in a task of its own; return its prediction, what made it fail (None if it did not), and tokens
    thrown away.
    """
    start, program = time.monotonic(), planned.program
    DISCARDED.set(discarded := [0, 0])
    with kept_calls() as calls:
        try:
            output = await program.acall(question=question)
        except (LMError, ProgramFaultError) as error:
            return build_failure(question, error, calls.all(), **planned.owner), error, discarded
    latency_s = time.monotonic() - start
    prediction = build_prediction(question, output, calls.all(), latency_s=latency_s, **planned.owner)
    return await read_both(program, question, prediction), None, discarded


class Scheduler:
    """Asks a cell's pending questions in their order, as many at a time as `concurrency` and the limits allow now."""

    def __init__(
        self,
        planned: PlannedCell,
        log: PredictionLog,
        observer: RunProgress,
        spending: Spending,
        concurrency: Callable[[], int],
    ) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()
        """Each asks one question."""
        self._planned, self._log, self._observer, self._spending = planned, log, observer, spending
        self._concurrency, self._waiting = concurrency, iter(planned.pending)
        self._failed_in_a_row, self._answered = 0, False
        self._fault: BaseException | None = None
        """What ends the asking: a fault that no other question would escape, or one of this program."""
        self._changed = asyncio.Event()
        """Set when a question is done, and when more may be begun in the next turn."""

    async def run(self) -> None:
        """Ask until nothing waits, or something stops it.

        A failed question is logged as failed and stays pending. Raises `EngineError` for a fault that no other question
        would escape, such as a refused key, and `RunFolderError` where answers cannot be written. Cancelling begins no
        further question, waits `GRACE_S` seconds for those in flight and loses nothing that was finished; cancelling
        again does not wait.
        """
        flusher = asyncio.create_task(self._flush_regularly())
        try:
            with limited(self._spending.outlasts):
                self._begin()
                while self.tasks:
                    await self._changed.wait()
                    self._changed.clear()
                    # A turn for what was begun, so that it is sent before more is prepared.
                    await asyncio.sleep(0)
                    self._begin()
        except asyncio.CancelledError:
            self._waiting = iter(())
            if self.tasks:
                self._observer.stopping(len(self.tasks))
                current: Any = asyncio.current_task()
                # Two cancellations within one turn of the loop arrive as one.
                await asyncio.wait(self.tasks, timeout=0.0 if current.cancelling() > 1 else GRACE_S)
            raise
        finally:
            # The flusher writes to the same log: it must have ended before the last flush, and before the log closes.
            ending = (*self.tasks, flusher)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            for task in [*self.tasks]:  # that ended in this very turn
                self._note_end(task)
            self._log.flush()
        if self._fault:
            raise self._fault

    def _begin(self) -> None:
        """Begin as many questions as may be in flight now, some in this turn and the rest in the next ones."""
        if self._failed_in_a_row >= _GIVE_UP_AFTER or self._spending.exhausted:
            return
        room = int(min(self._concurrency(), self._spending.room)) - len(self.tasks)
        questions = [*islice(self._waiting, max(0, min(room, _BEGUN_AT_ONCE)))]
        for question in questions:
            task = asyncio.create_task(answer(self._planned, question))
            self.tasks.add(task)
            task.add_done_callback(self._note_end)
        if len(questions) == _BEGUN_AT_ONCE:
            self._changed.set()

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        """Keep what came of a question, once; the first fault ends the asking."""
        if task not in self.tasks:
            return
        self.tasks.remove(task)
        self._changed.set()
        if task.cancelled():
            return
        try:
            prediction, error, discarded = task.result()
            # Where others were answered, the key is right and the model there.
            is_single = self._answered and getattr(error, "status", None) in (403, 404)
            if isinstance(error, _HOPELESS) and not is_single:
                self._waiting = iter(())
                self._fault = self._fault or EngineError(f"{self._planned.run_id}: {error}")
            if prediction.status is Status.FAILED:
                self._failed_in_a_row += 1
            else:
                self._failed_in_a_row, self._answered = 0, True
            prediction = self._spending.add(prediction, discarded)
            self._log.append(prediction)
            self._observer.answered(prediction)
        except BaseException as fault:
            self._fault, self._waiting = self._fault or fault, iter(())
            for other in self.tasks:
                other.cancel()

    async def _flush_regularly(self) -> None:
        # By time and not by number: a slow model's few answers are on the disk as soon as a fast one's many.
        # The last flush raises once more what this one raises.
        with suppress(RunFolderError):
            while True:
                await asyncio.sleep(_FLUSH_S)
                self._log.flush()
        self._waiting = iter(())


def run_interruptibly(work: Coroutine[Any, Any, T]) -> T:
    """Do the work on the loop that carries all traffic with models, and wait for it.

    Each of the first two Ctrl-C cancels the work; what it returns or raises then is what this returns or raises, and
    `KeyboardInterrupt` where it does not listen: asyncio's own handler would raise that in whatever line is executed.
    Outside the main thread, and where Ctrl-C is ignored, as under `nohup`, nothing cancels it.
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
