"""Trials: programs that DSPy's optimizers propose, asked by the machinery of a run.

They are asked on the event loop, many questions at a time and several candidates beside each other, and every
prediction is kept.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import dspy

from medexam.errors import EngineError, RunFolderError
from medexam.experiments.optimize.budget import Budget, StoppedError
from medexam.experiments.optimize.call_log import CallLog
from medexam.experiments.optimize.dspy_evaluation import Answers
from medexam.experiments.optimize.logged_engine import CallGroup, LoggedEngine, call_group
from medexam.experiments.optimize.own_metric import Feedback, gold_of, score_by
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.optimize.trials import Trial, program_digest, score_prediction, score_trial
from medexam.experiments.plan.cells import ExamCell
from medexam.experiments.run.scheduler import QuestionObserver, Scheduler
from medexam.experiments.run.spending import Spending
from medexam.experiments.store.run_folder import PREDICTIONS, RunFolder, pending
from medexam.measures.own import load_metric
from medexam.model_identity import Answerer
from medexam.predictions import Prediction
from medexam.programs import AskingProgram, save_program
from medexam.programs.loading import PROGRAM
from medexam.questions import Gold, Question

PART = "parts of the validation"
"""Group of the calls that score a program on some questions only."""
_AT_ONCE = 2
"""Programs that are asked at once: while one waits for its last replies, the next keeps the model busy."""


class TrialObserver(QuestionObserver, Protocol):
    """Watches the trials of an optimization."""

    def trial_ends(self, trial: Trial) -> None:
        """Take notice that a program is scored."""


@dataclass
class _Naming:
    """What the trials of an optimizer's thread are called."""

    name: str
    number: int | None
    """The next trial's; None takes the next that is free."""


_naming: ContextVar[_Naming | None] = ContextVar("naming", default=None)


class Evaluator:
    """Asks programs the validation questions.

    `naming`, `evaluate` and `answer` are called in the optimizer's threads, and wait for the loop that the evaluator
    was made on; all else runs on that loop, so nothing needs a lock between threads.
    """

    def __init__(
        self,
        plan: OptimizationPlan,
        admitted: Answerer,
        engine: LoggedEngine,
        log: CallLog,
        budget: Budget,
        observer: TrialObserver,
        keep: Callable[[], None],
    ) -> None:
        """`admitted` is the model that answers; `keep` is called after each trial."""
        self.trials: dict[str, Trial] = {}
        """Digest of the program -> its trial."""
        self._planned = replace(plan.validation, answerer=admitted)
        self._spec = plan.spec
        self._optimizer = plan.optimizer
        self._own_metric = load_metric(plan.optimizer.own_metric) if plan.optimizer.own_metric else None
        self._log = log
        self._budget = budget
        self._folder = plan.folder.programs
        self._observer = observer
        self._engine = engine
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._keep = keep
        self._loop = asyncio.get_running_loop()
        self._active: set[asyncio.Task[Any]] = set()
        self._next = 1
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def ordered(self) -> list[Trial]:
        """The trials by number."""
        return sorted(self.trials.values(), key=lambda trial: trial.number)

    @property
    def in_flight(self) -> int:
        """Programs that are being asked."""
        return len(self._active)

    def cancel(self) -> None:
        """Stop asking now."""
        for task in self._active:
            task.cancel()

    @contextmanager
    def naming(self, name: str, number: int | None = None) -> Iterator[None]:
        """Give the trials of the block this name, and the first this number; None takes the next that is free."""
        token = _naming.set(_Naming(name, number))
        try:
            yield
        finally:
            _naming.reset(token)

    def evaluate(self, program: AskingProgram, examples: Sequence[dspy.Example]) -> list[Prediction]:
        """Return the program's predictions of these questions, waited for.

        All validation questions make a trial. Raises `StoppedError` if the budget does not allow it, and `EngineError`
        if questions fail twice.
        """
        questions = [example.question for example in examples]
        # The coroutine runs in a copy of this thread's context: DSPy's settings, the naming and the call group.
        return asyncio.run_coroutine_threadsafe(self._evaluate(program, questions), self._loop).result()

    def answer(self, program: AskingProgram, examples: Sequence[dspy.Example]) -> Answers:
        """Return the same by question, as DSPy's optimizers read it."""
        return {
            prediction.question: dspy.Prediction(
                answer=prediction.answer,
                rationale=prediction.rationale,
                reply=prediction.reply,
                **self.score(example.question, gold_of(example), prediction)._asdict(),
            )
            for example, prediction in zip(examples, self.evaluate(program, examples), strict=True)
        }

    def score(self, question: Question, gold: Gold, prediction: Prediction) -> Feedback:
        """Score one answer by the optimizer's metric; raises `SpecError` if one's own raises or gives no score."""
        if self._own_metric is None:
            return Feedback(score_prediction(prediction, gold, self._optimizer.metric))
        return score_by(self._own_metric, question, gold, prediction)

    async def _evaluate(self, program: AskingProgram, questions: Sequence[Question]) -> list[Prediction]:
        task, digest = asyncio.current_task(), program_digest(program)
        assert task is not None  # noqa: S101 - coroutines run in tasks
        self._active.add(task)
        try:
            # Optimizers propose the same program twice; the second waits, and then finds the trial of the first.
            async with self._locks[digest]:
                is_full = {one.key for one in questions} == {one.key for one in self._planned.question_set.questions}
                folder = RunFolder(self._folder / (digest if is_full else f"{digest}-part"), digest)
                planned = replace(self._planned, program=program, folder=folder, spec_digest=digest)
                if not is_full:
                    return await self._ask(planned, questions, CallGroup(PART))
                if digest in self.trials:
                    predictions = folder.read_predictions()
                    return [predictions[question.key] for question in questions]
                return await self._try(planned, program, questions)
        finally:
            self._active.discard(task)

    async def _try(self, planned: ExamCell, program: AskingProgram, questions: Sequence[Question]) -> list[Prediction]:
        """Ask all validation questions, and keep the trial."""
        digest = planned.spec_digest
        group = self._reserve(program, questions, digest)
        try:
            naming = _naming.get()
            name, number = naming.name if naming else self._optimizer.kind, self._take_number()
            planned.folder.create()
            self._save(program, planned.folder.path / PROGRAM)
            predictions = await self._ask(planned, questions, group)
        finally:
            # What the log answered, or what was never asked, was not called.
            self._budget.release(group.reserved)
        trial = self.trials[digest] = score_trial(
            number,
            name,
            digest,
            program,
            predictions,
            key=planned.question_set.golds,
            scores=[
                self.score(question, planned.question_set.golds[question.key], prediction).score
                for question, prediction in zip(questions, predictions, strict=True)
            ],
            usage=self._log.usage(digest),
            answered_by=planned.answerer.print if planned.answerer else None,
        )
        self._observer.trial_ends(trial)
        self._keep()
        return predictions

    def _save(self, program: AskingProgram, path: Path) -> None:
        try:
            save_program(program, path, self._spec, self._planned.cell.dataset.language)
        except OSError as error:
            raise RunFolderError(f"cannot write {path}: {error.strerror}; the same command continues") from error

    def _reserve(self, program: AskingProgram, questions: Sequence[Question], digest: str) -> CallGroup:
        """Reserve the calls that the trial still needs. Half a trial is worth nothing: it begins with all or not at
        all.
        """
        self._budget.check()
        needed = sum(program.calls_for(question) for question in questions)
        # The log answers what an earlier session asked for this trial.
        missing = max(0, needed - self._log.usage(digest).calls)
        if not self._budget.reserve(missing):
            raise StoppedError(
                f"{self._budget.limits.max_calls} calls are too few for another trial, which takes {needed}"
            )
        return CallGroup(digest, missing)

    async def _ask(self, planned: ExamCell, questions: Sequence[Question], group: CallGroup) -> list[Prediction]:
        """Ask, and ask once more what failed."""
        folder = planned.folder
        keys = [question.key for question in questions]
        folder.create()
        # A session that was interrupted left some here; the log answers those again, and counts them.
        (folder.path / PREDICTIONS).unlink(missing_ok=True)
        predictions_by_key: dict[str, Prediction] = {}
        with call_group(group):
            for _ in range(2):
                missing = set(pending(keys, predictions_by_key))
                if not missing:
                    break
                remainder = tuple(question for question in questions if question.key in missing)
                async with self._turns:
                    with folder.appending() as log:
                        concurrency = lambda: self._engine.concurrency  # noqa: E731
                        await Scheduler(planned, log, self._observer, Spending(), concurrency, remainder).run()
                predictions_by_key = folder.read_predictions()
        if failed := pending(keys, predictions_by_key):
            failure = predictions_by_key[failed[0]].failure if failed[0] in predictions_by_key else None
            raise EngineError(
                f"{len(failed)} of {len(questions)} questions failed"
                f"{f' ({failure.kind}: {failure.message})' if failure else ''}"
            )
        predictions = [predictions_by_key[key] for key in keys]
        self._check_model(predictions)
        return predictions

    def _check_model(self, predictions: Iterable[Prediction]) -> None:
        """Raise `EngineError` if a reply names another model than the one that was admitted."""
        admitted = self._planned.answerer
        assert admitted is not None  # noqa: S101 - models are admitted before programs are tried
        others = {
            str(prediction.model) for prediction in predictions if prediction.answered_by not in (None, admitted.print)
        }
        if others:
            raise EngineError(
                f"replies come from {', '.join(sorted(others))}, not from {admitted.name}, and programs that two "
                "models answered cannot be ranked; resume once the first one answers again, or start over with --fresh"
            )

    def _take_number(self) -> int:
        naming = _naming.get()
        if naming is not None and naming.number is not None:
            number, naming.number = naming.number, None
        else:
            number = self._next
        self._next = max(self._next, number + 1)
        return number
