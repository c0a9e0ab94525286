"""Planned cells: what each run is about to do, before anything is asked.

Answers that another run of the same digest and model has are taken from it, and not paid for again: what is lent are
lines of `predictions.jsonl` with their calls. A model that is reached must be the one that gave them.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import dspy

from medexam.datasets.selection import draw_lot
from medexam.errors import RunFolderError
from medexam.experiments.plan.lookup import NearestDemonstrations, Retrieval
from medexam.experiments.store.environment import (
    admit,
    build_environment,
    describe_environment,
    read_models,
)
from medexam.experiments.store.items import ITEMS, MANY, StoredItems, begin_run
from medexam.experiments.store.run_folder import ENVIRONMENT, RunFolder, pending
from medexam.measures import Benchmark, find_benchmark
from medexam.model_identity import Answerer, ModelIdentity
from medexam.predictions import Status
from medexam.programs import AskingProgram, ProgramContext, build_program
from medexam.questions import AnySet
from medexam.specs import CellSpec, EngineNeeds, ModelSpec
from medexam.specs.identity import digest
from medexam.specs.programs.needs import NO_NEEDS
from medexam.text import print_notice


@dataclass(frozen=True)
class PlannedCell:
    """One run to be made or continued."""

    cell: CellSpec
    question_set: AnySet
    program: dspy.Module
    identity: dict[str, Any]
    folder: RunFolder
    retrieval: Retrieval | None = None
    """Where the program's passages come from; None where it sees none."""
    pending: Sequence[Any] = ()
    """Questions still to be asked, in the order of the data set."""
    answered: int = 0
    """How many of all the folder's questions a model has answered, whether they are selected now or not."""
    log_bytes: int = 0
    """Size of the folder's log when these were found in it."""
    answerers: Mapping[str | None, Answerer] = field(default_factory=dict)
    """Those of its `models` that were admitted to the folder."""
    lender: RunFolder | None = None
    """Another run of the same digest, which has answers to `lent`; None: all that is not answered is asked."""
    lent: frozenset[str] = frozenset()
    """Keys of questions that are not pending, because their answers are taken from that run."""
    description: str = ""
    """The experiment's."""
    fresh: bool = False
    """Whether --fresh begins it."""
    keeps_items: bool = True
    """Whether a new folder is to hold the questions."""

    @cached_property
    def spec_digest(self) -> str:
        """Digest of everything that an answer depends on."""
        return digest(self.identity)

    @cached_property
    def owner(self) -> dict[str, Any]:
        """Whose predictions its answers are."""
        return {"program": self.cell.program.label, "spec_digest": self.spec_digest, "answerers": self.answerers}

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
        flow = self.cell.program.flow
        found = () if self.retrieval is None else self.retrieval.warnings
        return (*self.question_set.notes, *found, *(() if flow is None else flow.warnings))

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """What scores the cell."""
        return find_benchmark(self.cell.dataset)

    def count_calls(self, *model: str | None) -> int:
        """Count the pending calls if none is retried: all, or those of a further model; None: of the run's own."""
        program = self.program
        if not isinstance(program, AskingProgram):
            return 0
        count = program.calls_of if model else program.calls_for
        return sum(count(question, *model) for question in self.pending)

    def updated(self) -> Self:
        """Return the cell with what its folder holds by now."""
        log_bytes, outcomes = self.folder.log_bytes, self.folder.read_outcomes()
        questions = {question.key: question for question in self.question_set.questions}
        return replace(
            self,
            pending=tuple(questions[key] for key in pending(questions, outcomes)),
            answered=sum(outcome.status is not Status.FAILED for outcome in outcomes.values()),
            log_bytes=log_bytes,
            lender=None,
            lent=frozenset(),
        )

    @property
    def lent_note(self) -> str | None:
        """Which answers are not asked for, in one line; None where all are."""
        if self.lender is None:
            return None
        return (
            f"{self.run_id}: {len(self.lent):,} answers are those of {self.lender.name} (same digest, same model); "
            "--fresh asks anew"
        )

    def with_lender(self) -> Self:
        """Return the cell with the run beside it that has answered most of its pending questions, which are then lent.

        Unchanged without one, if no model is asked, for a repeat, and for a run that --fresh began.
        """
        # Which further models gave another run's answers is not compared.
        if not self.asks_model or not self.pending or self.cell.asked_models or self.folder.repeat_number:
            return self
        if self.fresh or (self.folder.exists() and self.folder.read_record().fresh):
            return self
        lender, lent, keys = None, set[str](), {question.key for question in self.pending}
        for folder in map(RunFolder, sorted(self.folder.path.parent.glob(f"*-{self.spec_digest}*"))):
            # A run that cannot be read lends nothing.
            with suppress(RunFolderError):
                answered = keys & _read_model_answers(folder, None)[1] if folder.name != self.run_id else set()
                lender, lent = (folder, answered) if len(answered) > len(lent) else (lender, lent)
        pending = tuple(question for question in self.pending if question.key not in lent)
        return replace(self, lender=lender, lent=frozenset(lent), pending=pending)

    def take_lent(self, identity: ModelIdentity | None) -> Self:
        """Write the lent answers into its folder, which must be locked, and return the cell without a lender.

        `identity` is the model that will answer the others, and was admitted; None: nobody is asked. What another model
        answered is pending.
        """
        if (lender := self.lender) is None:
            return self
        model, answered = _read_model_answers(lender, identity)
        answerer, copied = self.answerers.get(None), answered & self.lent
        if model and not answerer:
            # A folder of another model takes nothing.
            with suppress(RunFolderError):
                answerer = admit(self.folder, model, answers=self.answered)
        if copied and answerer:
            self.begin()
            with self.folder.appending() as log:
                for key, prediction in lender.read_predictions().items():
                    if key in copied:
                        log.append(prediction.model_copy(update={"answered_by": answerer.print}))
            if not (self.folder.path / ENVIRONMENT).exists():
                engine = {name: lender.read_environment().get(name) for name in ("engine", "prices")}
                environment = build_environment(self.models, {}, {}, describe_environment())
                self.folder.write_json(ENVIRONMENT, environment | engine)
        if missing := len(self.lent) - len(copied):
            print_notice(
                f"warning: {self.run_id}: {missing:,} answers of {lender.name} are asked anew, because another model "
                "gave them"
            )
        return self.updated()

    def in_blocks(self) -> Self:
        """Return the cell with questions that are read from its folder as they are asked, if they are many and no
        prompt needs others beside them: 100,000 weigh as much as all that asks them.
        """
        needs_all, path = self.retrieval or self.folder.repeat_number, self.folder.path / ITEMS
        if needs_all or len(self.question_set.questions) < MANY or not path.exists():
            return self
        questions = StoredItems(path)
        waiting = StoredItems(path, [question.key for question in self.pending])
        return replace(self, question_set=replace(self.question_set, questions=questions), pending=waiting)

    def look_up(self, progress: Callable[[int], None] | None = None) -> Self:
        """Find the passages of the pending questions and order these by them; `progress` gets how many are encoded."""
        if isinstance(self.pending, StoredItems):
            return self
        questions = list(self.pending)
        if retrieval := self.retrieval:
            retrieval.fill(questions, progress)
            # Prompts of the same first passages open alike, and a server that remembers prompts reads that once.
            questions.sort(key=lambda question: [hit.passage.id for hit in retrieval.find(question)])
        if repeat := self.folder.repeat_number:
            questions.sort(key=lambda question: draw_lot(repeat, question.key))
        return replace(self, pending=tuple(questions))

    def begin(self) -> None:
        """Write what the run is asked into its folder.

        A run that was begun without its questions stays so. Raises `RunFolderError` where it is to hold none, and holds
        some or has an engine that keeps them there.
        """
        before = self.folder.read_record() if self.folder.exists() else None
        keepers = [model.engine for model in self.models.values() if model.ask_engine("works_in_folder")]
        if not self.keeps_items and (keepers or (before and before.keeps_items)):
            reason = f"engine {keepers[0]} keeps them in its folder" if keepers else "it holds them already"
            raise RunFolderError(
                f"run {self.run_id} cannot go without its questions, because {reason}: leave --without-items out, or "
                "start another run with --fresh and an engine that keeps none"
            )
        begin_run(
            self.folder,
            self.question_set,
            identity=self.identity,
            cell=self.cell,
            warnings=self.warnings,
            description=self.description,
            fresh=self.fresh or (before is not None and before.fresh),
            keeps_items=self.keeps_items if before is None else before.keeps_items,
        )


def build_cell_program(cell: CellSpec, retrieval: Retrieval | None = None, **context: Any) -> dspy.Module:
    """Build the program of a cell; `context` is what a `ProgramContext` holds beside passages and models' budgets."""
    budgets = {name: model.max_tokens for name, model in cell.asked_models.items()}
    own = {"finder": retrieval, "search": retrieval, "nearest": NearestDemonstrations, "budgets": budgets, **context}
    return build_program(cell.program, cell.dataset.language, ProgramContext(cell.model.max_tokens, **own))


def combine_needs(cells: Sequence[PlannedCell]) -> dict[ModelSpec, EngineNeeds]:
    """Combine what the requests of all cells to each model hold, so that one engine serves them all."""
    needs: dict[ModelSpec, EngineNeeds] = defaultdict(lambda: NO_NEEDS)
    for planned in cells:
        asking = planned.cell.program.asking
        for name, model in planned.models.items():
            needs[model] |= asking.engine_needs if name is None else asking.models.get(name, NO_NEEDS)
    return needs


def _read_model_answers(folder: RunFolder, identity: ModelIdentity | None) -> tuple[ModelIdentity | None, set[str]]:
    """Return a run's model and the keys of what it answered; None and no key if some of it is doubted, or if the model
    differs from `identity`, which None does not ask for.
    """
    for key, model in read_models(folder).items():
        if not model.doubts and (identity is None or not model.identity.differences(identity)):
            answers = {one.question: (one.answered_by, one.status) for one in folder.scan_predictions()}
            own = {name for name, (by, status) in answers.items() if by == key and status is not Status.FAILED}
            return model.identity, own
    return None, set()
