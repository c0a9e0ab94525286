"""Asking the questions of one cell: many in flight, each kept as it comes, none lost when the run is interrupted.

It knows when to stop: when all is asked, when the server is gone, when too many questions failed, and on Ctrl-C. It
knows programs and run folders; which engine answers and what the answers are worth is known elsewhere.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

import dspy
from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMAuthError,
    LMConfigurationError,
    LMError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
)

from medexam.errors import EngineError, RunFolderError
from medexam.experiments.store.run_folder import PredictionLog
from medexam.model_identity import Answerer
from medexam.predictions import Prediction, Status
from medexam.programs import build_failure, build_prediction
from medexam.questions import Question

FLUSH_S = 0.5
"""Seconds that a finished prediction waits at most for its place on the disk."""
GIVE_UP_AFTER = 32
"""Failures in a row after which the server is taken for gone and the rest of the cell stays pending."""
GRACE_S = 5.0
"""Seconds that Ctrl-C waits for the questions in flight; a second one does not wait."""

_HOPELESS = (LMAuthError, LMConfigurationError, LMUnsupportedFeatureError, LMUnsupportedModelError)


class QuestionObserver(Protocol):
    """Whoever watches questions being asked."""

    def asked(self) -> None:
        """One question is in flight from now on."""

    def answered(self, prediction: Prediction) -> None:
        """One question is done."""

    def stopping(self, in_flight: int) -> None:
        """Ctrl-C came: no question is begun any more, and so many are waited for, `GRACE_S` seconds at most."""


@dataclass
class FailureBudget:
    """What one invocation has asked, over all its cells, and how many of its questions may fail."""

    max_failures: int | None = None
    """None sets no limit."""
    asked: int = 0
    """Questions that are done, the failed ones included."""
    failed: int = 0

    def add(self, prediction: Prediction) -> None:
        """One more question is done."""
        self.asked += 1
        self.failed += prediction.status is Status.FAILED

    @property
    def exhausted(self) -> bool:
        """Whether as many questions failed as may fail."""
        return self.max_failures is not None and self.failed >= self.max_failures


class Work(Protocol):
    """Questions and the program that they are asked with, such as a planned cell."""

    @property
    def run_id(self) -> str:
        """What the work is called in messages."""
        ...

    @property
    def program_label(self) -> str:
        """The program's name in predictions."""
        ...

    @property
    def program(self) -> dspy.Module:
        """Called with each question."""
        ...

    @property
    def spec_digest(self) -> str:
        """What predictions say they belong to."""
        ...

    @property
    def answerer(self) -> Answerer | None:
        """The model that was admitted to the folder; None where none is asked."""
        ...

    @property
    def pending(self) -> Sequence[Any]:
        """The questions in the order of asking; each has a `key`."""
        ...


@dataclass
class Asking:
    """Questions being asked; `ask` drives one to its end."""

    planned: Work
    log: PredictionLog
    observer: QuestionObserver
    failures: FailureBudget
    waiting: deque[Question]
    concurrency: Callable[[], int]
    crew: set[asyncio.Task[None]] = field(default_factory=set)
    """Tasks that each ask one question at a time."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last of the crew has left, or one of them broke."""
    broken: BaseException | None = None
    failed_in_a_row: int = 0
    interrupted: bool = False
    unwritable: bool = False
    """Answers could not be put on the disk, so no more are asked for."""
    hopeless: list[LMError] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether no further question is begun."""
        stopped = self.interrupted or self.unwritable or bool(self.hopeless)
        return stopped or self.failed_in_a_row >= GIVE_UP_AFTER or self.failures.exhausted

    def hire(self) -> None:
        """Let as many ask as may be in flight now."""
        while self.waiting and not self.over and len(self.crew) < self.concurrency():
            task = asyncio.create_task(_work(self, self.waiting.popleft()))
            self.crew.add(task)
            task.add_done_callback(self._leave)
        if not self.crew:
            self.gone.set()

    def _leave(self, task: asyncio.Task[None]) -> None:
        self.crew.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.broken = self.broken or task.exception()
        if not self.crew or self.broken:
            self.gone.set()

    def keep(self, prediction: Prediction) -> None:
        """One question is done: count it, put it in the log and tell who watches."""
        self.failed_in_a_row = self.failed_in_a_row + 1 if prediction.status is Status.FAILED else 0
        self.failures.add(prediction)
        self.log.append(prediction)
        self.observer.answered(prediction)


async def ask(
    planned: Work,
    log: PredictionLog,
    observer: QuestionObserver,
    failures: FailureBudget,
    *,
    concurrency: Callable[[], int],
) -> None:
    """Ask every pending question of the cell, as many at a time as `concurrency` tells, and put each on `failures`.

    A failed question is logged as failed and stays pending; where `failures` is exhausted, or the last `GIVE_UP_AFTER`
    questions failed, so does the rest. Raises `EngineError` for a fault that no other question would escape, such as a
    refused key, and `RunFolderError` where answers cannot be written. Cancelling begins no further question, waits
    `GRACE_S` seconds for those in flight and loses nothing that was finished; cancelling again does not wait.
    """
    asking = Asking(planned, log, observer, failures, deque(planned.pending), concurrency)
    flusher = asyncio.create_task(flush_regularly(asking))
    asking.hire()
    try:
        await _finish(asking)
    finally:
        tasks = (*asking.crew, flusher)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        log.flush()
    if asking.hopeless:
        raise EngineError(f"{planned.run_id}: {asking.hopeless[0]}")


async def _finish(asking: Asking) -> None:
    """Wait until the crew is through or one of it breaks; what broke it is raised."""
    try:
        await asking.gone.wait()
    except asyncio.CancelledError:
        asking.interrupted = True
        if asking.crew:
            asking.observer.stopping(len(asking.crew))
            await asyncio.wait(asking.crew, timeout=GRACE_S)
        raise
    if asking.broken:
        raise asking.broken


async def _work(asking: Asking, question: Question) -> None:
    """Ask this question, then one after the other that is waiting, while not too many are in flight."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - it runs as a task
    while True:
        asking.observer.asked()
        asking.keep(await _answer(asking, question))
        asking.hire()
        if not asking.waiting or asking.over or len(asking.crew) > asking.concurrency():
            # At once, so that of too many only the surplus leaves.
            asking.crew.discard(task)
            return
        question = asking.waiting.popleft()


class _Names(TypedDict):
    program: str
    spec_digest: str
    answerer: Answerer | None


async def _answer(asking: Asking, question: Question) -> Prediction:
    planned = asking.planned
    names: _Names = {
        "program": planned.program_label,
        "spec_digest": planned.spec_digest,
        "answerer": planned.answerer,
    }
    begun = time.monotonic()
    try:
        said: dspy.Prediction = await planned.program.acall(question=question)
    except _HOPELESS as error:
        asking.hopeless.append(error)
        return build_failure(question, error, **names)
    except (LMError, ContextWindowExceededError) as error:
        return build_failure(question, error, **names)
    return build_prediction(question, said, latency_s=time.monotonic() - begun, **names)


async def flush_regularly(asking: Asking) -> None:
    """Put on the disk what was answered, every `FLUSH_S` seconds, until that is not possible or this is cancelled."""
    while not asking.unwritable:
        await asyncio.sleep(FLUSH_S)
        try:
            asking.log.flush()
        except RunFolderError:
            asking.unwritable = True
