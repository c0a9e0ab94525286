"""Trials: programs that DSPy's optimizers propose, asked by the machinery of a run.

DSPy's optimizers score a candidate by calling `Evaluate`, each in its own module; while one compiles, ours stands
there. It asks on the network loop, many questions at a time and several candidates beside each other, and keeps every
prediction.
"""

import asyncio
import importlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import dspy
from dspy.evaluate.evaluate import EvaluationResult

from medexam.errors import EngineError
from medexam.experiments.optimize.budget import Budget, StoppedError
from medexam.experiments.optimize.call_log import CallLog, LoggedEngine, Purpose, calling_for
from medexam.experiments.optimize.candidate_queue import Turns
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.optimize.trials import Trial, mean_score, program_digest, score_prediction
from medexam.experiments.plan.cells import ExamCell
from medexam.experiments.run.scheduler import FailureBudget, QuestionObserver, ask
from medexam.experiments.store.run_folder import PREDICTIONS, RunFolder, pending
from medexam.files import PRIVATE
from medexam.model_identity import Answerer
from medexam.predictions import Prediction
from medexam.programs import ExamProgram, WithNearest, save_program
from medexam.programs.loading import PROGRAM
from medexam.questions import Question

_MODULES = ("random_search", "mipro_optimizer_v2", "copro_optimizer", "gepa.gepa_utils", "bootstrap_trace")
"""DSPy's modules that name `Evaluate`."""
PART = "parts of the validation"
"""What calls are for that score a program on some of the validation questions."""


class TrialObserver(QuestionObserver, Protocol):
    """Whoever watches an optimization."""

    def trial_starts(self, name: str, questions: int) -> None:
        """A program is asked so many questions from now on."""

    def trial_ends(self, trial: Trial) -> None:
        """A program is scored."""


@dataclass
class _Slot:
    """What a thread of an optimizer evaluates."""

    evaluator: "Evaluator"
    number: int | None
    """The next trial's; None takes the next that is free."""
    name: str


_slot: ContextVar[_Slot | None] = ContextVar("slot", default=None)


class Evaluator:
    """Asks programs the validation questions; its methods are called in the optimizer's threads."""

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
        self._spec = plan.program
        self._optimizer = plan.optimizer
        self._log = log
        self._budget = budget
        self._folder = plan.folder.programs
        self._observer = observer
        self._turns = Turns(observer, lambda: engine.concurrency)
        self._keep = keep
        self._loop = asyncio.get_running_loop()
        self._active: set[asyncio.Task[Any]] = set()
        self._next = 1
        self._alone: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

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
    def trying(self, name: str, number: int | None = None) -> Iterator[None]:
        """What is evaluated within is called by this name and number; None takes the next number that is free."""
        token = _slot.set(_Slot(self, number, name))
        try:
            yield
        finally:
            _slot.reset(token)

    def evaluate(self, program: ExamProgram, examples: Sequence[dspy.Example]) -> list[Prediction]:
        """The program's predictions of these questions, waited for.

        All validation questions make a trial. Raises `StoppedError` where the budget does not allow it, and
        `EngineError` where questions fail, however often they are asked.
        """
        questions = [example.question for example in examples]
        return asyncio.run_coroutine_threadsafe(self._evaluate(program, questions), self._loop).result()

    async def _evaluate(self, program: ExamProgram, questions: Sequence[Question]) -> list[Prediction]:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines run in tasks
        self._active.add(task)
        try:
            return await self._answered(program, questions)
        finally:
            self._active.discard(task)

    async def _answered(self, program: ExamProgram, questions: Sequence[Question]) -> list[Prediction]:
        digest = program_digest(program)
        async with self._alone[digest]:
            return await self._asked(program, questions, digest)

    async def _asked(self, program: ExamProgram, questions: Sequence[Question], digest: str) -> list[Prediction]:
        whole = {question.key for question in questions} == {q.key for q in self._planned.question_set.questions}
        folder = RunFolder(self._folder / digest, digest)
        if whole and digest in self.trials:
            found = folder.read_predictions()
            return [found[question.key] for question in questions]
        purpose = Purpose(digest if whole else PART)
        if whole:
            self._promise(program, questions, purpose)
        name = slot.name if (slot := _slot.get()) else self._optimizer.kind
        number = self._number() if whole else None
        folder.create()
        (folder.path / PREDICTIONS).unlink(missing_ok=True)
        if whole:
            self._save(program, folder.path / PROGRAM)
            self._observer.trial_starts(name, len(questions))
        try:
            with calling_for(purpose):
                found = await self._ask(
                    replace(self._planned, program=program, folder=folder, spec_digest=digest), questions
                )
        finally:
            self._budget.release(purpose.promised)
        said = [found[question.key] for question in questions]
        self._check_model(said)
        if number is not None:
            trial = self._scored(number, name, digest, program, said)
            self.trials[digest] = trial
            self._observer.trial_ends(trial)
            self._keep()
        return said

    def _save(self, program: ExamProgram, path: Path) -> None:
        save_program(program, path, self._spec, self._planned.cell.dataset.language)
        path.chmod(PRIVATE)

    def _promise(self, program: ExamProgram, questions: Sequence[Question], purpose: Purpose) -> None:
        self._budget.check()
        needed = sum(program.calls_for(question) for question in questions)
        missing = max(0, needed - self._log.spent(purpose.name).calls)
        if not self._budget.promise(missing):
            raise StoppedError(f"{self._budget.limits.calls} calls do not suffice for another trial of {needed}")
        purpose.promised = missing

    async def _ask(self, planned: ExamCell, questions: Sequence[Question]) -> dict[str, Prediction]:
        """Ask, and ask once more what failed."""
        for _ in range(2):
            found = planned.folder.read_predictions()
            remaining = set(pending([question.key for question in questions], found))
            if not remaining:
                return found
            left = tuple(question for question in questions if question.key in remaining)
            async with self._turns.taking(len(left)) as turn:
                with planned.folder.appending() as log:
                    await ask(replace(planned, pending=left), log, turn, FailureBudget(), concurrency=self._turns.share)
        found = planned.folder.read_predictions()
        failed = pending([question.key for question in questions], found)
        if failed:
            failure = found[failed[0]].failure if failed[0] in found else None
            raise EngineError(
                f"{len(failed)} of {len(questions)} questions failed"
                f"{f' ({failure.kind}: {failure.message})' if failure else ''}"
            )
        return found

    def _check_model(self, said: Iterable[Prediction]) -> None:
        """Raises `EngineError` where a reply names another model than the one that was admitted."""
        admitted = self._planned.answerer
        assert admitted is not None  # noqa: S101 - models are admitted before programs are tried
        others = {str(one.model) for one in said if one.answered_by not in (None, admitted.print)}
        if others:
            raise EngineError(
                f"replies come from {', '.join(sorted(others))}, not from {admitted.name}, and programs that two "
                "models answered cannot be ranked; go on once the first one answers again, or start anew with --fresh"
            )

    def _number(self) -> int:
        slot = _slot.get()
        if slot is not None and slot.number is not None:
            number, slot.number = slot.number, None
        else:
            number = self._next
        self._next = max(self._next, number + 1)
        return number

    def _scored(self, number: int, name: str, digest: str, program: ExamProgram, said: Sequence[Prediction]) -> Trial:
        key, spent = self._planned.question_set.golds, self._log.spent(digest)
        return Trial(
            number=number,
            name=name,
            digest=digest,
            demos=_shown(program),
            n=len(said),
            right=sum(one.answer == key[one.question].number for one in said),
            unanswered=sum(one.answer is None for one in said),
            score=mean_score(said, key, self._optimizer.metric),
            calls=spent.calls,
            tokens=spent.tokens,
            answered_by=self._planned.answerer.print if self._planned.answerer else None,
        )

    def result(self, program: ExamProgram, examples: Sequence[dspy.Example]) -> EvaluationResult:
        """What DSPy's optimizers expect of an evaluation; the score in percent."""
        said = self.evaluate(program, examples)
        metric = self._optimizer.metric
        scores = [score_prediction(one, ex.answer, metric) for one, ex in zip(said, examples, strict=True)]
        rows = [
            (example, dspy.Prediction(answer=one.answer, rationale=one.rationale, reply=one.reply), score)
            for example, one, score in zip(examples, said, scores, strict=True)
        ]
        return EvaluationResult(score=round(100 * sum(scores) / len(scores), 2), results=rows)


def _shown(program: ExamProgram) -> int:
    if isinstance(program, WithNearest):
        return program.finder.k
    return sum(len(predictor.demos) for predictor in program.predictors())


class _Evaluate(dspy.Evaluate):
    """Stands where DSPy's own does: our programs are asked by the evaluator, anything else as DSPy would."""

    def __call__(self, program: Any, **overrides: Any) -> EvaluationResult:
        slot = _slot.get()
        if slot is not None and isinstance(program, ExamProgram) and "forward" not in vars(program):
            devset = overrides.get("devset")
            return slot.evaluator.result(program, devset if devset is not None else self.devset)
        return super().__call__(program, **overrides)


@contextmanager
def evaluating_here() -> Iterator[None]:
    """Have DSPy's optimizers evaluate by the `Evaluator` whose `trying` they are called in, and draw no bars."""
    modules = [importlib.import_module(f"dspy.teleprompt.{name}") for name in _MODULES]
    bootstrap: Any = importlib.import_module("dspy.teleprompt.bootstrap")
    before = [module.Evaluate for module in modules]
    bars = bootstrap.tqdm
    for module in modules:
        module.Evaluate = _Evaluate  # type: ignore[attr-defined]
    bootstrap.tqdm = SimpleNamespace(tqdm=iter)
    try:
        yield
    finally:
        for module, theirs in zip(modules, before, strict=True):
            module.Evaluate = theirs  # type: ignore[attr-defined]
        bootstrap.tqdm = bars
