"""From a spec to what will run: the questions, words, identity and run folder of each cell.

Planning reads data sets and run folders and asks no model; `medexam plan` prints it, `medexam run` carries it out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from medexam.datasets import ExamSet, load_exam_set
from medexam.errors import CorpusUnreachableError, RunFolderError
from medexam.experiments.retrieving import Retrieval, is_retrieving, plan_retrieval, plan_without_corpus
from medexam.experiments.run_folder import RunFolder, RunRecord, owed
from medexam.programs import ExamProgram, build_program
from medexam.questions import Question
from medexam.retrievers.building import PlannedRetriever, plan_retriever
from medexam.signatures import load_words
from medexam.specs import AskingSpec, CellSpec, DatasetSpec, ExperimentSpec, RetrieverSpec, build_cells
from medexam.specs.identity import differences, digest, identity
from medexam.specs.places import cache_dir


@dataclass(frozen=True)
class PlannedCell:
    """One run to be made or continued."""

    cell: CellSpec
    exam_set: ExamSet
    program: dspy.Module
    identity: dict[str, Any]
    spec_digest: str
    folder: RunFolder
    retrieval: Retrieval | None
    """Where the program's passages come from; None where it sees none."""
    owed: tuple[Question, ...]
    """Questions still to be asked, in the order of the exams."""

    @property
    def label(self) -> str:
        """The program and its language, for tables and progress bars."""
        return f"{self.cell.program.label} {self.cell.dataset.language}"

    @property
    def asks_model(self) -> bool:
        """Whether the program needs an engine; the controls do not."""
        return isinstance(self.cell.program, AskingSpec)

    @property
    def corpus_is_here(self) -> bool:
        """Whether the corpus is known; where it is not, neither is the run's digest."""
        return self.retrieval is None or self.retrieval.size is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the results should know; mostly nothing."""
        return () if self.retrieval is None else self.retrieval.warnings

    @property
    def calls(self) -> int:
        """Calls of a model still to be made, if none is retried."""
        program = self.program
        return sum(program.calls_for(question) for question in self.owed) if isinstance(program, ExamProgram) else 0


@dataclass(frozen=True)
class Plan:
    """An experiment ready to run."""

    experiment: ExperimentSpec
    cells: tuple[PlannedCell, ...]
    runs_dir: Path

    def record(self, planned: PlannedCell) -> RunRecord:
        """What a cell's `spec.json` says."""
        return RunRecord(
            run_id=planned.folder.run_id,
            spec_digest=planned.spec_digest,
            identity=planned.identity,
            cell=planned.cell,
            description=self.experiment.description,
            dataset_version=planned.exam_set.version,
            dataset_source=planned.exam_set.source,
            dataset_fingerprint=planned.exam_set.fingerprint,
            questions=tuple(question.key for question in planned.exam_set.questions),
            experiment_digest=digest({"name": self.experiment.name, "cells": [c.spec_digest for c in self.cells]}),
            warnings=planned.warnings,
        )


def plan_experiment(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    runs_dir: Path,
    resume: str | None = None,
    fresh: bool = False,
    only_look: bool = False,
) -> Plan:
    """What running `document` under `overrides` would do.

    `resume` names a run, by id or folder, that must be continued: the cell with its digest is planned alone. `fresh`
    starts new runs beside those that exist. `only_look` makes a plan that is not carried out: a corpus of the hub that
    cannot be brought is a warning then, and the cell counts as a run that was not begun. Raises `SpecError`,
    `DatasetError`, or `RunFolderError` when the run to be resumed does not exist or answers to another spec.
    """
    experiment, cells = build_cells(document, overrides)
    sources = _Sources(only_look=only_look)
    planned = [sources.prepare(cell) for cell in cells]
    if resume is not None:
        folder = _run_to_resume(resume, runs_dir)
        chosen = [_resumable(planned, folder)]
        return Plan(experiment, tuple(_planned(item, folder) for item in chosen), runs_dir)
    return Plan(
        experiment,
        tuple(_planned(item, _folder(item.cell, item.identity, runs_dir, fresh)) for item in planned),
        runs_dir,
    )


@dataclass(frozen=True)
class _Prepared:
    """A cell with what it reads."""

    cell: CellSpec
    exam_set: ExamSet
    identity: dict[str, Any]
    retrieval: Retrieval | None


class _Sources:
    """Data sets and corpora, each read once for all cells."""

    def __init__(self, *, only_look: bool) -> None:
        self._only_look = only_look
        self._exam_sets: dict[DatasetSpec, ExamSet] = {}
        self._retrievers: dict[RetrieverSpec, PlannedRetriever | CorpusUnreachableError] = {}

    def prepare(self, cell: CellSpec) -> _Prepared:
        exam_set = self._exam_set(cell.dataset)
        retrieval, identity = None, None
        if is_retrieving(cell.program):
            twins = self._twins(cell)
            try:
                planned = self._retriever(cell.program.retriever)
            except CorpusUnreachableError as error:
                if not self._only_look:
                    raise
                retrieval = plan_without_corpus(cell.program, error, twins)
                identity = cell.program.retriever.model_dump(mode="json")
            else:
                retrieval = plan_retrieval(cell.program, planned, cache_dir(), cell.dataset.language, twins)
                identity = planned.identity
        return _Prepared(cell, exam_set, _identity(cell, exam_set, identity), retrieval)

    def _retriever(self, spec: RetrieverSpec) -> PlannedRetriever:
        known = self._retrievers.get(spec)
        if known is None:
            try:
                known = plan_retriever(spec)
            except CorpusUnreachableError as error:
                known = error
            self._retrievers[spec] = known
        if isinstance(known, CorpusUnreachableError):
            raise known
        return known

    def _exam_set(self, spec: DatasetSpec) -> ExamSet:
        if spec not in self._exam_sets:
            self._exam_sets[spec] = load_exam_set(spec)
        return self._exam_sets[spec]

    def _twins(self, cell: CellSpec) -> Callable[[], dict[str, Question]] | None:
        """The questions in the language of the queries; None where that is their own."""
        language = getattr(cell.program, "query_language", None)
        if language is None or language == cell.dataset.language:
            return None
        # A path names the file of one language.
        spec = DatasetSpec(name=cell.dataset.name, language=language)
        return lambda: {question.key: question for question in self._exam_set(spec).questions}


def _identity(cell: CellSpec, exam_set: ExamSet, retriever: dict[str, Any] | None) -> dict[str, Any]:
    program = cell.program
    words = load_words(program, cell.dataset.language).to_json() if isinstance(program, AskingSpec) else {}
    return identity(cell, dataset_version=exam_set.version, words=words, retriever=retriever)


def _planned(prepared: _Prepared, folder: RunFolder) -> PlannedCell:
    cell, exam_set, known = prepared.cell, prepared.exam_set, prepared.identity
    questions = {question.key: question for question in exam_set.questions}
    remaining = owed(questions, folder.read_predictions() if folder.exists() else {})
    return PlannedCell(
        cell=cell,
        exam_set=exam_set,
        program=build_program(
            cell.program, cell.dataset.language, max_tokens=cell.model.max_tokens, finder=prepared.retrieval
        ),
        identity=known,
        spec_digest=digest(known),
        folder=folder,
        retrieval=prepared.retrieval,
        owed=tuple(questions[key] for key in remaining),
    )


def _folder(cell: CellSpec, known: dict[str, Any], runs_dir: Path, fresh: bool) -> RunFolder:
    """The last run of this digest, or the next name that is free when there is none or a fresh one is wanted."""
    asks = isinstance(cell.program, AskingSpec)
    words = [cell.name, *([cell.model.label] if asks else []), cell.program.label, cell.dataset.language, digest(known)]
    name = "-".join(re.sub(r"[^A-Za-z0-9._]+", "_", word) for word in words)
    folder = following = RunFolder(runs_dir / name)
    attempt = 1
    while following.exists():
        folder, attempt = following, attempt + 1
        following = RunFolder(runs_dir / f"{name}-{attempt}")
    if folder.exists() and not fresh:
        theirs = folder.read_record()
        if theirs.spec_digest != digest(known):
            raise RunFolderError(_other_spec(folder, known, theirs.identity))
        return folder
    return following


def _run_to_resume(run: str, runs_dir: Path) -> RunFolder:
    for folder in (RunFolder(runs_dir / run), RunFolder(Path(run))):
        if folder.exists():
            return folder
    raise RunFolderError(f"no run {run} to resume in {runs_dir}: give its id or its folder")


def _resumable(planned: Sequence[_Prepared], folder: RunFolder) -> _Prepared:
    record = folder.read_record()
    for item in planned:
        if digest(item.identity) == record.spec_digest:
            return item
    nearest = min((item.identity for item in planned), key=lambda known: len(differences(known, record.identity)))
    raise RunFolderError(_other_spec(folder, nearest, record.identity))


def _other_spec(folder: RunFolder, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    keys = ", ".join(differences(ours, theirs))
    return (
        f"run {folder.run_id} was made under another spec (it differs in {keys}); "
        "run without --resume to start a run of this spec, or restore the spec to resume that one"
    )
