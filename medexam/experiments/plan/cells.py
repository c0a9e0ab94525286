"""Planned cells and plans: what a run is about to do, before anything is asked."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import dspy

from medexam.datasets.selection import draw_lot
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.plan.passage_lookup import GivenPassages, Retrieval
from medexam.experiments.store.answerers import RUN_WAYS_OUT
from medexam.experiments.store.run_folder import RunFolder, RunRecord, describe_items, pending
from medexam.measures import Benchmark, find_benchmark
from medexam.model_identity import Answerer
from medexam.predictions import Prediction, Status
from medexam.programs import AskingProgram, ProgramContext, build_program
from medexam.programs.wrapping import find_nearest
from medexam.questions import AnySet, ExamSet, Question, Task
from medexam.specs import CellSpec, EngineNeeds, ModelSpec
from medexam.specs.programs.needs import NO_NEEDS

S_co = TypeVar("S_co", bound=AnySet, covariant=True)


@dataclass(frozen=True)
class PlannedCell(Generic[S_co]):
    """One run to be made or continued."""

    cell: CellSpec
    question_set: S_co
    program: dspy.Module
    identity: dict[str, Any]
    spec_digest: str
    folder: RunFolder
    retrieval: Retrieval | None
    """Where the program's passages come from; None where it sees none."""
    nearest: NearestDemonstrations | None
    """Which demonstrations a question is shown; None where all are shown the same, or none."""
    pending: tuple[Any, ...]
    """Questions still to be asked, in the order of the data set."""
    right: int
    """How many of the others are answered right; 0 where an answer is more or less right."""
    answered: int
    """How many of all the folder's questions a model has answered, whether they are selected now or not."""
    answerer: Answerer | None = None
    """The model that was admitted to the folder; None until it is known, and for a program that asks none."""
    further: Mapping[str, Answerer] = field(default_factory=dict)
    """The further models that were admitted, by name; empty until they are known."""
    lender: RunFolder | None = None
    """Another run of the same digest, which has answers to `lent`; None: all that is not answered is asked."""
    lent: tuple[Any, ...] = ()
    """Questions that are not pending, because their answers are taken from that run."""
    repeat: int = 0
    """Which repeat of its run it is, asked in an order of its own; 0: the run itself."""
    place: int = 0
    """Position in the experiment, 0 the first."""
    description: str = ""
    """The experiment's."""
    experiment_digest: str = ""
    """Identity of the experiment, whichever of its cells are planned."""

    @property
    def label(self) -> str:
        """The program and its language, for tables and progress bars."""
        dataset = self.cell.dataset
        return " ".join([self.program_label, dataset.language, *dataset.changes])

    @cached_property
    def program_label(self) -> str:
        """The program's short name, which every prediction holds."""
        return self.cell.program.label

    @property
    def run_id(self) -> str:
        """The name of the run's folder."""
        return self.folder.name

    @property
    def asks_model(self) -> bool:
        """Whether the program needs an engine; the controls do not."""
        return self.cell.program.asks_model

    @property
    def models(self) -> tuple[ModelSpec, ...]:
        """The model that answers, then the further ones that are asked."""
        return self.cell.model, *self.cell.asked_models.values()

    @property
    def corpus_is_here(self) -> bool:
        """Whether corpus and encoder are known; where they are not, neither is the run's digest."""
        return self.retrieval is None or self.retrieval.size is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the results should know; usually empty."""
        return (*self.question_set.notes, *(() if self.retrieval is None else self.retrieval.warnings))

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """What scores the cell."""
        return find_benchmark(self.cell.dataset)

    @property
    def is_right(self) -> Callable[[Prediction], bool] | None:
        """Whether an answer to one of the cell's questions is right; None if answers are more or less right."""
        if not self.benchmark.right_or_wrong:
            return None
        golds = self.question_set.golds
        return lambda prediction: golds[prediction.question].accepts(prediction.answer)

    @property
    def total(self) -> int:
        """Questions that are to be answered when the run is done."""
        return len(self.question_set.questions)

    @property
    def done(self) -> int:
        """How many of them are answered, here or by the lender."""
        return self.total - len(self.pending)

    @property
    def calls(self) -> int:
        """Calls of a model still to be made, if none is retried."""
        is_asking = isinstance(self.program, AskingProgram)
        return sum(self.program.calls_for(question) for question in self.pending) if is_asking else 0

    def calls_of(self, model: str | None) -> int:
        """Count those of the calls that ask one of the further models at most; None: the run's own."""
        is_asking = isinstance(self.program, AskingProgram)
        return sum(self.program.calls_of(question, model) for question in self.pending) if is_asking else 0

    def look_up(self, progress: Callable[[int], None] | None = None, *, nearest: bool = True) -> Self:
        """Find what prompts show beside the pending questions, and order these by it; may take a while.

        `progress` is called with the number of passages that are encoded. Without `nearest`, passages alone.
        """
        pending = list(self.pending)
        if (retrieval := self.retrieval) is not None:
            retrieval.fill(pending, progress)
            # Prompts of the same first passages open alike, and a server that remembers prompts reads that once.
            pending.sort(key=lambda question: [hit.passage.id for hit in retrieval.find(question)])
        if self.nearest is not None and nearest:
            self.nearest.fill(pending)
        if self.repeat:
            pending.sort(key=lambda question: draw_lot(self.repeat, question.key))
        return replace(self, pending=tuple(pending))

    def updated(self) -> Self:
        """Return the cell with what its folder holds by now."""
        pending, right, answered = take_stock(self.folder, self.question_set, self.benchmark)
        return replace(self, pending=pending, right=right, answered=answered, lender=None, lent=())

    def build_preview(self, questions: Sequence[Question | Task]) -> dspy.Module:
        """Build the program, ready to show the first prompts of these questions.

        Passages are those known from before, else a mark for each; nothing is looked up or read.
        """
        program, cell = self.program, self.cell
        if self.retrieval is not None and self.asks_model:
            if self.retrieval.size is not None:
                self.retrieval.recall(questions)
            preview = GivenPassages(self.retrieval.preview, self.retrieval.settings.k)
            budgets = {name: model.max_tokens for name, model in cell.asked_models.items()}
            context = ProgramContext(
                cell.model.max_tokens,
                preview,
                preview,
                nearest=NearestDemonstrations,
                supports=preview,
                budgets=budgets,
            )
            program = build_program(cell.program, cell.dataset.language, context)
        if isinstance(finder := find_nearest(program), NearestDemonstrations):
            finder.fill([question for question in questions if isinstance(question, Question)])
        return program

    def record(self, *, fresh: bool, keeps_items: bool) -> RunRecord:
        """Return what the folder's `spec.json` says of a run that was, or was not, begun by --fresh."""
        before = self.folder.read_record() if self.folder.exists() else None
        return RunRecord(
            fresh=fresh or (before is not None and before.fresh),
            run_id=self.run_id,
            spec_digest=self.spec_digest,
            identity=self.identity,
            cell=self.cell,
            description=self.description,
            **describe_items(self.question_set),
            experiment_digest=self.experiment_digest,
            place=self.place,
            # A run that was begun without its questions stays so.
            keeps_items=keeps_items and (before is None or before.keeps_items),
            warnings=self.warnings,
        )


ExamCell = PlannedCell[ExamSet]
"""A run on questions with numbered options."""
AnyCell = PlannedCell[AnySet]


@dataclass(frozen=True)
class Plan:
    """An experiment, several, or one run, ready to run."""

    name: str
    """The experiments'."""
    cells: tuple[AnyCell, ...]
    runs_dir: Path
    news: tuple[str, ...] = ()
    """One line for each stored run whose data have changed since, and for what its questions are too few for."""
    accept_model_change: bool = False
    """Whether another model than the one that began a run may go on with it."""
    ways_out: str = RUN_WAYS_OUT
    """What a user may do where it may not, for the message."""
    accept_refusals: bool = False
    """Whether questions that a server refused in three runs in a row are closed as unanswered."""
    fresh: bool = False
    """Whether all is asked anew, whatever other runs have answered."""
    keeps_items: bool = True
    """Whether the folders of its runs hold the questions."""


def combine_needs(cells: Sequence[AnyCell]) -> dict[ModelSpec, EngineNeeds]:
    """Combine what the requests of all cells to each model hold, so that one engine serves them all."""
    needs: dict[ModelSpec, EngineNeeds] = defaultdict(lambda: NO_NEEDS)
    for planned in cells:
        program = planned.cell.program
        needs[planned.cell.model] |= program.asking.engine_needs
        for name, model in planned.cell.asked_models.items():
            needs[model] |= program.asking.models.get(name, NO_NEEDS)
    return needs


def join_plans(plans: Sequence[Plan]) -> Plan:
    """Join the plans of several experiments, two or more, into one; a run that two of them plan is in it once."""
    cells: dict[Path, AnyCell] = {}
    for cell in (cell for plan in plans for cell in plan.cells):
        cells.setdefault(cell.folder.path, cell)
    return Plan(
        name=", ".join(plan.name for plan in plans),
        cells=tuple(cells.values()),
        runs_dir=plans[0].runs_dir,
        fresh=any(plan.fresh for plan in plans),
        news=tuple(dict.fromkeys(line for plan in plans for line in plan.news)),
    )


def take_stock(
    folder: RunFolder, items: AnySet, benchmark: Benchmark[Any, Any]
) -> tuple[tuple[Question | Task, ...], int, int]:
    """Read the pending questions in the data set's order, how many others are right, and all answers of the folder."""
    outcomes = folder.read_outcomes() if folder.exists() else {}
    questions: dict[str, Question | Task] = {question.key: question for question in items.questions}
    pending_keys = pending(questions, outcomes)
    done = questions.keys() - set(pending_keys)
    right = sum(items.golds[key].accepts(outcomes[key].answer) for key in done) if benchmark.right_or_wrong else 0
    answered = sum(outcome.status is not Status.FAILED for outcome in outcomes.values())
    return tuple(questions[key] for key in pending_keys), right, answered
