"""From a spec to what will run: the questions, words, identity and run folder of each cell.

Planning reads data sets and run folders and asks no model; `medexam plan` prints it, `medexam run` carries it out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import dspy

from medexam.benchmarks import Benchmark, Feature, find_benchmark
from medexam.errors import CommitUnknownError, CorpusUnreachableError, EngineError, MedExamError, RunFolderError
from medexam.experiments.plan.context_lookup import (
    ContextReading,
    ReadingRetrieval,
    pin_reader,
    reader_identity,
    with_reader,
)
from medexam.experiments.plan.leakage import check_demonstrations
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.plan.passage_lookup import Retrieval, is_retrieving, plan_retrieval, plan_without_corpus
from medexam.experiments.plan.resolve import resolve_cells
from medexam.experiments.plan.words import asked_words
from medexam.experiments.store.data_changes import (
    DataChange,
    describe_earlier,
    describe_golds,
    describe_texts,
    find_data_change,
)
from medexam.experiments.store.prediction_lines import Outcome
from medexam.experiments.store.questions import as_asked
from medexam.experiments.store.run_folder import RunFolder, RunRecord, pending
from medexam.experiments.store.stored_run import find_run
from medexam.experiments.store.work_folder import folders_of, name_part
from medexam.gc_pause import gc_paused
from medexam.items import AnySet, ExamSet
from medexam.model_identity import Answerer
from medexam.paths import cache_dir
from medexam.predictions import Prediction, Status
from medexam.programs import AskingProgram, WithNearest, build_program, demonstrations
from medexam.questions import Question
from medexam.retrievers.building import PlannedRetriever, plan_retriever
from medexam.serve.naming import known_model
from medexam.specs import (
    AskingSpec,
    CellSpec,
    DatasetSpec,
    ModelSpec,
    ProgramSpec,
    ReadingSpec,
    RetrieverSpec,
    SpanReaderSpec,
)
from medexam.specs.identity import IDENTITY_SCHEMA, differences, digest, identity
from medexam.tasks import Task

_UNREACHABLE = (CorpusUnreachableError, CommitUnknownError)
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

    @property
    def label(self) -> str:
        """The program and its language, for tables and progress bars."""
        dataset = self.cell.dataset
        return " ".join([self.cell.program.label, dataset.language, *dataset.form])

    @property
    def program_label(self) -> str:
        """The program alone, as predictions name it."""
        return self.cell.program.label

    @property
    def run_id(self) -> str:
        """The name of the run's folder."""
        return self.folder.name

    @property
    def asks_model(self) -> bool:
        """Whether the program needs an engine; the controls do not."""
        return isinstance(self.cell.program, AskingSpec)

    @property
    def corpus_is_here(self) -> bool:
        """Whether corpus and encoder are known; where they are not, neither is the run's digest."""
        return self.retrieval is None or self.retrieval.size is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the results should know; mostly nothing."""
        own = self.question_set.notes
        return own if self.retrieval is None else (*own, *self.retrieval.warnings)

    @property
    def benchmark(self) -> Benchmark[Any, Any, Any]:
        """What scores the cell."""
        return find_benchmark(self.cell.dataset.name)

    @property
    def is_right(self) -> Callable[[Prediction], bool] | None:
        """Whether an answer to one of the cell's questions is right; None if answers are more or less right."""
        if Feature.EXAMS not in self.benchmark.features:
            return None
        is_right, golds = self.benchmark.is_right, self.question_set.golds
        return lambda prediction: is_right(prediction, golds[prediction.question])

    @property
    def calls(self) -> int:
        """Calls of a model still to be made, if none is retried."""
        if not isinstance(self.program, AskingProgram):
            return 0
        return sum(self.program.calls_for(question) for question in self.pending)


ExamCell = PlannedCell[ExamSet]
"""A run on questions with numbered options."""
AnyCell = PlannedCell[AnySet]


@dataclass(frozen=True)
class Plan:
    """An experiment, or one run of it, ready to run."""

    name: str
    """The experiment's."""
    description: str
    experiment_digest: str
    """Identity of the experiment, whichever of its cells are planned."""
    cells: tuple[AnyCell, ...]
    runs_dir: Path
    news: tuple[str, ...] = ()
    """One line for each stored run whose data have changed since."""
    accept_model_change: bool = False
    """Whether another model than the one that began a run may go on with it."""

    def record(self, planned: AnyCell) -> RunRecord:
        """What a cell's `spec.json` says."""
        return RunRecord(
            run_id=planned.folder.name,
            schema=IDENTITY_SCHEMA,
            spec_digest=planned.spec_digest,
            identity=planned.identity,
            cell=planned.cell,
            description=self.description,
            dataset_version=planned.question_set.version,
            dataset_source=planned.question_set.source,
            dataset_fingerprint=planned.question_set.fingerprint,
            dataset_golds=planned.question_set.golds_fingerprint,
            questions=tuple(question.key for question in planned.question_set.questions),
            experiment_digest=self.experiment_digest,
            warnings=planned.warnings,
            readings=planned.cell.program.readings,
        )


def plan_experiment(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    runs_dir: Path,
    fresh: bool = False,
    only_look: bool = False,
) -> Plan:
    """What running `document` under `overrides` would do: runs that exist are continued.

    `fresh` starts new runs beside those that exist. `only_look` makes a plan that is not carried out: a corpus of the
    hub that cannot be brought, or an encoder whose commit nobody tells, is a warning then, and the cell counts as a run
    that was not begun. Raises `SpecError`, `DatasetError`, or `RunFolderError` where a run's folder holds another.
    """
    experiment, cells = resolve_cells(document, overrides, only_look=only_look)
    sources = _Sources(only_look=only_look)
    prepared = [sources.prepare(cell) for cell in cells]
    planned = tuple(_planned(item, _folder(item.cell, item.identity, runs_dir, fresh)) for item in prepared)
    return Plan(
        name=experiment.name,
        description=experiment.description,
        experiment_digest=digest({"name": experiment.name, "cells": [cell.spec_digest for cell in planned]}),
        cells=planned,
        runs_dir=runs_dir,
        news=_news(planned),
    )


def plan_resume(run: str, *, runs_dir: Path) -> Plan:
    """What continuing one run would do: its own cell and its own questions, as its folder keeps them.

    `run` is a run's folder, or its id in `runs_dir`. Raises `RunFolderError` where there is no such run, or where what
    its answers depend on, the texts of its data included, is not what it was, and `DatasetError` where its data cannot
    be read.
    """
    folder = find_run(run, runs_dir)
    record = folder.read_record()
    prepared = _Sources(only_look=False).prepare(record.cell, record.cell.dataset.whole)
    data = prepared.question_set
    if find_data_change(record, data) is DataChange.TEXTS:
        raise RunFolderError(
            f"run {record.run_id} cannot go on: {describe_texts(record, data)}; restore {record.dataset_source}, "
            "or run its spec without --resume to ask the texts as they are in a run of their own"
        )
    if record.schema != IDENTITY_SCHEMA:
        raise RunFolderError(
            f"run {record.run_id} cannot go on: an earlier version made it, whose identity covers less, so nobody "
            "knows whether the same would answer; it is reported and compared as it is; run its spec to start a new run"
        )
    if digest(prepared.identity) != record.spec_digest:
        keys = ", ".join(differences(prepared.identity, record.identity))
        raise RunFolderError(
            f"run {record.run_id} cannot go on: what its answers depend on has changed ({keys}); "
            "restore it, or run its spec to start a run of it as it is now"
        )
    planned = _planned(replace(prepared, question_set=as_asked(record, data)), folder)
    return Plan(
        name=record.cell.name,
        description=record.description,
        experiment_digest=record.experiment_digest,
        cells=(planned,),
        runs_dir=folder.path.parent,
        news=_news([planned]),
    )


def _news(cells: Sequence[AnyCell]) -> tuple[str, ...]:
    """What has changed in the data of the runs that the cells go on with, or take the place of."""
    lines = (
        describe_golds(cell.folder, cell.folder.read_record(), cell.question_set)
        if cell.folder.exists()
        else describe_earlier(cell.folder, cell.spec_digest, cell.identity)
        for cell in cells
    )
    return tuple(line for line in lines if line is not None)


@dataclass(frozen=True)
class _Prepared:
    """A cell with what it reads."""

    cell: CellSpec
    question_set: AnySet
    identity: dict[str, Any]
    retrieval: Retrieval | None
    reader: ReadingSpec | None
    """The program with its reader's content as the revision; None for all others."""


class _Sources:
    """Data sets and corpora, each read once for all cells."""

    def __init__(self, *, only_look: bool) -> None:
        self._only_look = only_look
        self._question_sets: dict[DatasetSpec, AnySet] = {}
        self._retrievers: dict[RetrieverSpec, PlannedRetriever | MedExamError] = {}
        self._models: dict[ModelSpec, dict[str, Any]] = {}

    def prepare(self, cell: CellSpec, data: DatasetSpec | None = None) -> _Prepared:
        """`data` None: the questions that the cell selects."""
        question_set = self._question_set(data or cell.dataset)
        program = self._pinned(cell.program)
        retrieval, identity, twin_set = None, None, None
        if is_retrieving(program):
            twin_set = self._twins(cell)
            twins = _by_key(twin_set) if twin_set else None
            try:
                planned = self._retriever(program.retriever)
            except _UNREACHABLE as error:
                if not self._only_look:
                    raise
                retrieval = plan_without_corpus(program, error, twins)
                identity = program.retriever.model_dump(mode="json")
            else:
                retrieval = plan_retrieval(program, planned, cache_dir(), cell.dataset.language, twins)
                identity = planned.identity
            if isinstance(program, ReadingSpec):
                retrieval = with_reader(retrieval)
        model = self._model(cell.model) if isinstance(program, AskingSpec) else None
        reader = program if isinstance(program, ReadingSpec) else None
        known = _identity(cell, question_set, identity, twin_set, model, reader)
        return _Prepared(cell, question_set, known, retrieval, reader)

    def _pinned(self, program: ProgramSpec) -> ProgramSpec:
        """The program, its reader pinned where it has one."""
        if not isinstance(program, ReadingSpec):
            return program
        try:
            return pin_reader(program)
        except CommitUnknownError:
            if not self._only_look:
                raise
            return program

    def _model(self, spec: ModelSpec) -> dict[str, Any]:
        if spec not in self._models:
            try:
                self._models[spec] = known_model(spec)
            except EngineError:
                if not self._only_look:
                    raise
                self._models[spec] = {"engine": spec.engine}
        return self._models[spec]

    def _retriever(self, spec: RetrieverSpec) -> PlannedRetriever:
        known = self._retrievers.get(spec)
        if known is None:
            try:
                known = plan_retriever(spec)
            except _UNREACHABLE as error:
                known = error
            self._retrievers[spec] = known
        if isinstance(known, MedExamError):
            raise known
        return known

    def _question_set(self, spec: DatasetSpec) -> AnySet:
        if spec not in self._question_sets:
            with gc_paused():
                self._question_sets[spec] = find_benchmark(spec.name).load(spec)
            find_benchmark(spec.name).check()
        return self._question_sets[spec]

    def _twins(self, cell: CellSpec) -> AnySet | None:
        """The questions in the language of the queries; None where that is their own."""
        language = getattr(cell.program, "query_language", None)
        if language is None or language == cell.dataset.language:
            return None
        # A path names the file of one language.
        return self._question_set(DatasetSpec(name=cell.dataset.name, language=language))


def _by_key(question_set: AnySet) -> Callable[[], dict[str, Question]]:
    return lambda: {one.key: one for one in question_set.questions if isinstance(one, Question)}


def _identity(
    cell: CellSpec,
    question_set: AnySet,
    retriever: dict[str, Any] | None,
    twins: AnySet | None,
    model: dict[str, Any] | None,
    reader: ReadingSpec | None,
) -> dict[str, Any]:
    return identity(
        cell,
        fingerprint=question_set.fingerprint,
        words=asked_words(cell.program, cell.dataset.language),
        retriever=retriever,
        twins=twins.fingerprint if twins else None,
        model=model,
        reader=reader_identity(reader) if reader is not None else None,
    )


def _planned(prepared: _Prepared, folder: RunFolder) -> AnyCell:
    cell, data, known = prepared.cell, prepared.question_set, prepared.identity
    folder = replace(folder, spec_digest=digest(known))
    questions: dict[str, Question | Task] = {question.key: question for question in data.questions}
    outcomes = folder.read_outcomes() if folder.exists() else {}
    remaining = pending(questions, outcomes)
    answered = questions.keys() - set(remaining)
    program = build_program(
        cell.program,
        cell.dataset.language,
        max_tokens=cell.model.max_tokens,
        finder=prepared.retrieval,
        nearest=NearestDemonstrations,
        reader=prepared.retrieval if isinstance(prepared.retrieval, ReadingRetrieval) else None,
        context_reader=_context_reader(prepared.reader, [questions[key] for key in remaining]),
    )
    finder = program.finder if isinstance(program, WithNearest) else None
    nearest = finder if isinstance(finder, NearestDemonstrations) else None
    exams = Feature.EXAMS in find_benchmark(data.name).features
    if exams and (path := getattr(cell.program, "load", None)) is not None:
        shown = [demo["question"] for _, demo in demonstrations(program)]
        check_demonstrations(shown, data.questions, f"program.load {path}")
    return PlannedCell(
        cell=cell,
        question_set=data,
        program=program,
        identity=known,
        spec_digest=digest(known),
        folder=folder,
        retrieval=prepared.retrieval,
        nearest=nearest,
        pending=tuple(questions[key] for key in remaining),
        right=_count_right(data, outcomes, answered),
        answered=_count_answered(outcomes),
    )


def look_again(planned: AnyCell) -> AnyCell:
    """The cell with what its folder holds by now."""
    outcomes = planned.folder.read_outcomes()
    questions = {question.key: question for question in planned.question_set.questions}
    remaining = pending(questions, outcomes)
    answered = questions.keys() - set(remaining)
    return replace(
        planned,
        pending=tuple(questions[key] for key in remaining),
        right=_count_right(planned.question_set, outcomes, answered),
        answered=_count_answered(outcomes),
    )


def _context_reader(program: ReadingSpec | None, asked: Sequence[Question | Task]) -> ContextReading | None:
    """What reads the texts that tasks bring along; None for all other programs."""
    if not isinstance(program, SpanReaderSpec) or program.context != "given":
        return None
    return ContextReading(program, [task for task in asked if isinstance(task, Task)])


def _count_right(data: AnySet, outcomes: Mapping[str, Outcome], keys: Iterable[str]) -> int:
    is_right = find_benchmark(data.name).is_right
    return sum(is_right(outcomes[key], data.golds[key]) for key in keys)


def _count_answered(outcomes: Mapping[str, Outcome]) -> int:
    return sum(outcome.status is not Status.FAILED for outcome in outcomes.values())


def _folder(cell: CellSpec, known: dict[str, Any], runs_dir: Path, fresh: bool) -> RunFolder:
    """The last run of this experiment and digest, whatever its model and program are called; else a new name.

    `fresh` wants a new name in any case.
    """
    found = _runs_of(cell.name, digest(known), runs_dir)
    if not found or fresh:
        name = f"{_stem(cell)}-{digest(known)}"
        return RunFolder(runs_dir / (f"{name}-{max(found) + 1}" if found else name))
    folder = found[max(found)]
    theirs = folder.read_record()
    if theirs.spec_digest != digest(known):
        keys = ", ".join(differences(known, theirs.identity))
        raise RunFolderError(
            f"run {folder.name} was made under another spec (it differs in {keys}); "
            "move it away, or start another run beside it with --fresh"
        )
    return folder


def _stem(cell: CellSpec) -> str:
    """What the names of a cell's runs begin with: it says to people what was asked, and identifies nothing."""
    asks = isinstance(cell.program, AskingSpec)
    words = [cell.name, *([cell.model.label] if asks else []), cell.program.label, cell.dataset.language]
    return "-".join(map(name_part, words))


def _runs_of(experiment: str, spec_digest: str, runs_dir: Path) -> dict[int, RunFolder]:
    """The runs of a digest in an experiment by the number at the end of their names, 1 where there is none."""
    folders = {number: RunFolder(path) for number, path in folders_of(experiment, spec_digest, runs_dir).items()}
    return {number: folder for number, folder in folders.items() if folder.exists()}
