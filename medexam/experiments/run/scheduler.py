"""Asking the questions of one cell: many in flight, each answer kept as it comes, none lost in an interruption.

It stops when all is asked, when the server is gone, when a limit is reached, and on Ctrl-C. It knows programs
and prediction logs, and neither engines nor scores.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dspy.utils.exceptions import (
    LMAuthError,
    LMConfigurationError,
    LMError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
)

from medexam.errors import EngineError, ProgramFaultError, RunFolderError
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.run.spending import Spending
from medexam.experiments.store.logs import PredictionLog
from medexam.predictions import Prediction, Status
from medexam.programs import AskingProgram, build_prediction
from medexam.programs.kept import kept_calls
from medexam.programs.outcome import build_failure, read_both
from medexam.serve.asking import asking, limited

if TYPE_CHECKING:
    from medexam.experiments.entry.progress import RunProgress

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


async def answer(planned: PlannedCell, question: Any) -> tuple[Prediction, Exception | None, tuple[int, int]]:
    """Ask one question; return its prediction, what made it fail (None if it did not), and tokens thrown away."""
    start, program = time.monotonic(), planned.program
    owner: dict[str, Any] = {name: getattr(planned, name) for name in ("spec_digest", "answerer")}
    owner["program"] = planned.cell.program.label
    try:
        with asking() as discarded, kept_calls() as calls:
            output = await program.acall(question=question)
    except (LMError, ProgramFaultError) as error:
        return build_failure(question, error, calls.all(), **owner), error, (discarded[0], discarded[1])
    timed = {**owner, "further": planned.further, "latency_s": time.monotonic() - start}
    prediction = build_prediction(question, output, calls.all(), **timed)
    if isinstance(program, AskingProgram):
        prediction = await read_both(program, question, prediction)
    return prediction, None, (discarded[0], discarded[1])


class Scheduler:
    """Asks a cell's pending questions in their order, as many at a time as `concurrency` and the limits allow now."""

    def __init__(
        self,
        planned: PlannedCell,
        log: PredictionLog,
        observer: "RunProgress",
        spending: Spending,
        concurrency: Callable[[], int],
    ) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        """Each asks one question."""
        self._planned, self._log, self._observer, self._spending = planned, log, observer, spending
        self._concurrency, self._waiting = concurrency, iter(planned.pending)
        self._failed_in_a_row = 0
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
                task = asyncio.current_task()
                # Two cancellations within one turn of the loop arrive as one.
                is_second = task is not None and task.cancelling() > 1
                await asyncio.wait(self.tasks, timeout=0.0 if is_second else GRACE_S)
            raise
        finally:
            # The flusher writes to the same log: it must have ended before the last flush, and before the log closes.
            ending = (*self.tasks, flusher)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            self._log.flush()
        if self._fault is not None:
            raise self._fault

    def _begin(self) -> None:
        """Begin as many questions as may be in flight now, some in this turn and the rest in the next ones."""
        for _ in range(_BEGUN_AT_ONCE):
            is_over = self._failed_in_a_row >= _GIVE_UP_AFTER or self._spending.exhausted is not None
            if is_over or len(self.tasks) >= min(self._concurrency(), self._spending.room):
                return
            if (question := next(self._waiting, None)) is None:
                return
            task = asyncio.create_task(self._ask(question))
            self.tasks.add(task)
            task.add_done_callback(self._note_end)
        self._changed.set()

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._fault, self._waiting = self._fault or task.exception(), iter(())
            for other in self.tasks:
                other.cancel()
        self._changed.set()

    async def _ask(self, question: Any) -> None:
        prediction, error, discarded = await answer(self._planned, question)
        if isinstance(error, _HOPELESS):
            self._waiting = iter(())
            self._fault = self._fault or EngineError(f"{self._planned.run_id}: {error}")
        self._failed_in_a_row = self._failed_in_a_row + 1 if prediction.status is Status.FAILED else 0
        self._spending.add(prediction, discarded)
        self._log.append(prediction)
        self._observer.answered(prediction)

    async def _flush_regularly(self) -> None:
        # By time and not by number: a slow model's few answers are on the disk as soon as a fast one's many.
        # The last flush raises once more what this one raises.
        with suppress(RunFolderError):
            while True:
                await asyncio.sleep(_FLUSH_S)
                self._log.flush()
        self._waiting = iter(())
