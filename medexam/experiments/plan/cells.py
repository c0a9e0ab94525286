"""Planned cells: what each run is about to do, before anything is asked."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import dspy

from medexam.datasets.selection import draw_lot
from medexam.experiments.plan.lookup import NearestDemonstrations, ReadAhead, Retrieval
from medexam.experiments.store.items import ITEMS, MANY, StoredItems, begin_run
from medexam.experiments.store.run_folder import RunFolder, pending
from medexam.measures import Benchmark, find_benchmark
from medexam.model_identity import Answerer
from medexam.predictions import Status
from medexam.programs import AskingProgram, ProgramContext, build_program
from medexam.questions import AnySet
from medexam.specs import CellSpec, EngineNeeds, ModelSpec
from medexam.specs.programs.needs import NO_NEEDS


@dataclass(frozen=True)
class PlannedCell:
    """One run to be made or continued."""

    cell: CellSpec
    question_set: AnySet
    program: dspy.Module
    identity: dict[str, Any]
    folder: RunFolder
    """With the digest of the identity."""
    retrieval: Retrieval | None = None
    """Where the program's passages come from; None where it sees none."""
    reading: ReadAhead | None = None
    """What has texts read by a local model; None where none are."""
    pending: Sequence[Any] = ()
    """Questions still to be asked, in the order of the data set."""
    answered: int = 0
    """How many of all the folder's questions a model has answered, whether they are selected now or not."""
    answerer: Answerer | None = None
    """The model that was admitted to the folder; None until it is known, and for a program that asks none."""
    further: Mapping[str, Answerer] = field(default_factory=dict)
    """The further models that were admitted, by name; empty until they are known."""
    lender: RunFolder | None = None
    """Another run of the same digest, which has answers to `lent`; None: all that is not answered is asked."""
    lent: tuple[Any, ...] = ()
    """Questions that are not pending, because their answers are taken from that run."""
    experiment: Mapping[str, Any] = field(default_factory=dict)
    """What the folder's record says of the experiment: `description`, `experiment_digest`, and its `place` there."""

    @property
    def spec_digest(self) -> str:
        """Digest of everything that an answer depends on."""
        return str(self.folder.spec_digest)

    @cached_property
    def owner(self) -> dict[str, Any]:
        """Whose predictions its answers are."""
        return {"program": self.cell.program.label, "spec_digest": self.spec_digest}

    @property
    def label(self) -> str:
        """The program and its language, for tables and progress bars."""
        dataset = self.cell.dataset
        return " ".join([self.cell.program.label, dataset.language, *dataset.changes])

    @property
    def run_id(self) -> str:
        """The name of the run's folder."""
        return self.folder.name

    @property
    def asks_model(self) -> bool:
        """Whether the program needs an engine; the controls do not."""
        return self.cell.program.asks_model

    @property
    def models(self) -> dict[str | None, ModelSpec]:
        """The models that are asked: the one that answers, as None, and further ones by name. None for a control."""
        own: dict[str | None, ModelSpec] = {None: self.cell.model} if self.asks_model else {}
        own.update(self.cell.asked_models)
        return own

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the results should know; usually empty."""
        return (*self.question_set.notes, *(() if self.retrieval is None else self.retrieval.warnings))

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """What scores the cell."""
        return find_benchmark(self.cell.dataset)

    def count_calls(self, *model: str | None) -> int:
        """Count the calls still to be made if none is retried: all, those of one of the further models, or of None, the
        run's own.
        """
        program = self.program
        if not isinstance(program, AskingProgram):
            return 0
        count = program.calls_of if model else program.calls_for
        return sum(count(question, *model) for question in self.pending)

    def updated(self) -> Self:
        """Return the cell with what its folder holds by now."""
        outcomes = self.folder.read_outcomes() if self.folder.path.exists() else {}
        questions = {question.key: question for question in self.question_set.questions}
        return replace(
            self,
            pending=tuple(questions[key] for key in pending(questions, outcomes)),
            answered=sum(outcome.status is not Status.FAILED for outcome in outcomes.values()),
            lender=None,
            lent=(),
        )

    def in_blocks(self) -> Self:
        """Return the cell with questions that are read from its folder as they are asked, if they are many and no
        prompt needs others beside them: 100,000 weigh as much as all that asks them.
        """
        needs_all, path = self.retrieval or self.reading or self.folder.repeat_number, self.folder.path / ITEMS
        if needs_all or len(self.question_set.questions) < MANY or not path.exists():
            return self
        questions: Any = StoredItems(path)
        waiting = StoredItems(path, [question.key for question in self.pending])
        return replace(self, question_set=replace(self.question_set, questions=questions), pending=waiting)

    def look_up(self, progress: Callable[[int], None] | None = None) -> Self:
        """Find the passages of the pending questions, and order these by them; may take a while.

        `progress` is called with the number of passages that are encoded.
        """
        if isinstance(self.pending, StoredItems):
            return self
        questions = list(self.pending)
        if (retrieval := self.retrieval) is not None:
            retrieval.fill(questions, progress)
            # Prompts of the same first passages open alike, and a server that remembers prompts reads that once.
            questions.sort(key=lambda question: [hit.passage.id for hit in retrieval.find(question)])
        if repeat := self.folder.repeat_number:
            questions.sort(key=lambda question: draw_lot(repeat, question.key))
        if self.reading is not None:
            self.reading.coming = iter(questions)
        return replace(self, pending=tuple(questions))

    def begin(self, *, fresh: bool, keeps_items: bool) -> None:
        """Write what the run is asked into its folder; `fresh`: it was begun by --fresh."""
        before = self.folder.read_record() if self.folder.exists() else None
        begin_run(
            self.folder,
            self.question_set,
            fresh=fresh or (before is not None and before.fresh),
            identity=self.identity,
            cell=self.cell,
            **self.experiment,
            # A run that was begun without its questions stays so.
            keeps_items=keeps_items and (before is None or before.keeps_items),
            warnings=self.warnings,
        )


def build_cell_program(cell: CellSpec, retrieval: Retrieval | None = None, **context: Any) -> dspy.Module:
    """Build the program of a cell; `context` is what a `ProgramContext` holds beside passages and models' budgets."""
    own: dict[str, Any] = {"finder": retrieval, "search": retrieval, "nearest": NearestDemonstrations}
    own["budgets"] = {name: model.max_tokens for name, model in cell.asked_models.items()}
    return build_program(
        cell.program, cell.dataset.language, ProgramContext(cell.model.max_tokens, **{**own, **context})
    )


def combine_needs(cells: Sequence[PlannedCell]) -> dict[ModelSpec, EngineNeeds]:
    """Combine what the requests of all cells to each model hold, so that one engine serves them all."""
    needs: dict[ModelSpec, EngineNeeds] = defaultdict(lambda: NO_NEEDS)
    for planned in cells:
        asking = planned.cell.program.asking
        for name, model in planned.models.items():
            needs[model] |= asking.engine_needs if name is None else asking.models.get(name, NO_NEEDS)
    return needs
