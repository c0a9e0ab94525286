"""Asking the questions of one cell: many in flight, each answer kept as it comes, none lost in an interruption.

It stops when all is asked, when the server is gone, when a limit is reached, and on Ctrl-C. It knows programs
and prediction logs, and neither engines nor scores.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any, Protocol

import dspy
from dspy.utils.exceptions import (
    LMAuthError,
    LMConfigurationError,
    LMError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
)

from medexam.errors import EngineError, ProgramFaultError, RunFolderError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.spending import Spending
from medexam.experiments.store.prediction_lines import PredictionLog
from medexam.model_identity import Answerer
from medexam.predictions import Prediction, Status
from medexam.programs import AskingProgram, build_prediction
from medexam.programs.kept import kept_calls
from medexam.programs.outcome import build_failure, read_both
from medexam.serve.waits import covered_s, limited, recorded

FLUSH_S = 0.5
"""Seconds that a finished prediction waits at most until it is on the disk."""
GIVE_UP_AFTER = 32
"""Failures in a row after which the server is taken for gone and the rest of the cell stays pending."""
GRACE_S = 5.0
"""Seconds that Ctrl-C waits for the questions in flight; a second one does not wait."""
_BEGUN_AT_ONCE = 64
"""Questions begun in one turn of the event loop. All requests would otherwise wait until the last question is prepared:
1.4 s for 64 servers."""
_HOPELESS = (LMAuthError, LMConfigurationError, LMUnsupportedFeatureError, LMUnsupportedModelError)
"""Faults that no other question would escape."""


class QuestionObserver(Protocol):
    """Watches questions being asked."""

    def asked(self) -> None:
        """Note that one question is in flight from now on."""

    def answered(self, prediction: Prediction) -> None:
        """Note that one question is done."""

    def stopping(self, in_flight: int) -> None:
        """Note that Ctrl-C came: no question is begun any more; `in_flight` are waited for at most `GRACE_S` s."""


@dataclass(frozen=True)
class Work:
    """A program, and what the predictions that it makes belong to."""

    run_id: str
    """The work's name in messages."""
    program: dspy.Module
    """Called with each question."""
    program_label: str
    """The program's name in predictions."""
    spec_digest: str
    answerer: Answerer | None
    """The model that was admitted to the folder; None where none is asked."""
    further: Mapping[str, Answerer] = field(default_factory=dict)
    """The further models that were admitted, by name."""

    @classmethod
    def of(cls, planned: AnyCell) -> "Work":
        """Return the work of a planned cell."""
        label = planned.cell.program.label
        return cls(planned.run_id, planned.program, label, planned.spec_digest, planned.answerer, planned.further)


async def answer(work: Work, question: Any) -> tuple[Prediction, Exception | None, tuple[int, int]]:
    """Ask one question; return its prediction, what made it fail (None if it did not), and tokens thrown away."""
    start, owner = time.monotonic(), {"program": work.program_label, "spec_digest": work.spec_digest}
    try:
        with recorded() as waits, kept_calls() as calls:
            output = await work.program.acall(question=question)
    except (LMError, ProgramFaultError) as error:
        return build_failure(question, error, calls.all(), **owner, answerer=work.answerer), error, waits.discarded
    prediction = build_prediction(
        question,
        output,
        calls.all(),
        **owner,
        answerer=work.answerer,
        further=work.further,
        latency_s=time.monotonic() - start,
        waiting_s=covered_s(waits),
    )
    if isinstance(work.program, AskingProgram):
        prediction = await read_both(work.program, question, prediction)
    return prediction, None, waits.discarded


@dataclass
class Scheduler:
    """Asks questions, as many at a time as `concurrency` and the limits allow now."""

    work: Work
    log: PredictionLog
    observer: QuestionObserver
    spending: Spending
    concurrency: Callable[[], int]
    questions: InitVar[Iterable[Any]]
    """In the order of asking; each has a `key`."""
    waiting: deque[Any] = field(init=False)
    """Questions that are not begun."""
    tasks: set[asyncio.Task[None]] = field(init=False, default_factory=set)
    """Each asks one question at a time."""
    _stopped: bool = field(init=False, default=False)
    """Whether it was stopped, answers do not fit the disk, or no other question would escape a fault."""
    _failed_in_a_row: int = field(init=False, default=0)
    _hopeless: LMError | None = field(init=False, default=None)
    _broken: BaseException | None = field(init=False, default=None)
    """What ended a task that should have gone on."""
    _changed: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    """Set when no task is left, when one broke, and when more may be begun in the next turn."""

    def __post_init__(self, questions: Iterable[Any]) -> None:
        self.waiting = deque(questions)

    @property
    def over(self) -> bool:
        """Whether no further question is begun."""
        return self._stopped or self._failed_in_a_row >= GIVE_UP_AFTER or self.spending.exhausted is not None

    async def run(self) -> None:
        """Ask until nothing waits, or `over`.

        A failed question is logged as failed and stays pending. Raises `EngineError` for a fault that no other question
        would escape, such as a refused key, and `RunFolderError` where answers cannot be written. Cancelling begins no
        further question, waits `GRACE_S` seconds for those in flight and loses nothing that was finished; cancelling
        again does not wait.
        """
        flusher = asyncio.create_task(self._flush_regularly())
        try:
            with limited(self.spending.outlasts):
                await self._ask_all()
        except asyncio.CancelledError:
            self._stopped = True
            if self.tasks:
                self.observer.stopping(len(self.tasks))
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
            self.log.flush()
        if self._hopeless is not None:
            raise EngineError(f"{self.work.run_id}: {self._hopeless}")

    def leave(self) -> None:
        """End `run` at once; the questions in flight stay pending."""
        self._stopped = True
        for task in self.tasks:
            task.cancel()

    async def _ask_all(self) -> None:
        self._start_tasks()
        while self.tasks:
            await self._changed.wait()
            self._changed.clear()
            # A turn for what was begun, so that it is sent before more is prepared.
            await asyncio.sleep(0)
            if self._broken is not None:
                raise self._broken
            self._start_tasks()

    def _limit(self) -> float:
        return min(self.concurrency(), self.spending.room)

    def _start_tasks(self) -> None:
        """Have as many questions asked as may be in flight now, some in this turn and the rest in the next ones."""
        starts = 0
        while self.waiting and not self.over and len(self.tasks) < self._limit():
            if starts == _BEGUN_AT_ONCE:
                self._changed.set()
                return
            starts += 1
            task = asyncio.create_task(self._ask_in_turn(self.waiting.popleft()))
            self.tasks.add(task)
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._broken = self._broken or task.exception()
        if not self.tasks or self._broken:
            self._changed.set()

    async def _ask_in_turn(self, question: Any) -> None:
        """Ask this question, then one after the other that waits, while not too many are in flight."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it runs as a task
        while True:
            self.observer.asked()
            prediction, error, discarded = await answer(self.work, question)
            if isinstance(error, _HOPELESS):
                self._hopeless, self._stopped = self._hopeless or error, True
            self._failed_in_a_row = self._failed_in_a_row + 1 if prediction.status is Status.FAILED else 0
            self.spending.add(prediction, discarded)
            self.log.append(prediction)
            self.observer.answered(prediction)
            # A program may answer without ever waiting: Ctrl-C and the flusher get their turn all the same.
            await asyncio.sleep(0)
            # The limit may have risen with this answer, and nobody else looks while all tasks are busy.
            self._start_tasks()
            if not self.waiting or self.over or len(self.tasks) > self._limit():
                # Discarded at once: the callback runs later, and until then the other tasks would count this one, take
                # themselves for surplus as well, and leave too many.
                self.tasks.discard(task)
                return
            question = self.waiting.popleft()

    async def _flush_regularly(self) -> None:
        # By time and not by number: a slow model's few answers are on the disk as soon as a fast one's many.
        while True:
            await asyncio.sleep(FLUSH_S)
            try:
                self.log.flush()
            except RunFolderError:
                # The last flush raises it once more.
                self._stopped = True
                return
