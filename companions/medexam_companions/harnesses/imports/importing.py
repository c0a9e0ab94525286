"""From a file of results to run folders: read, matched with a data set, written and scored like any run.

A run's digest covers the SHA-256 of its file, so a file that was imported before is found and not written again.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from medexam import Prediction
from medexam.benchmarks import find_benchmark
from medexam.errors import SpecError
from medexam.experiments import (
    ENVIRONMENT,
    PREDICTIONS,
    AnyRun,
    RunFolder,
    RunRecord,
    begin_run,
    current_run,
    describe_environment,
    describe_items,
    name_part,
    score_cell,
)
from medexam.files import whole_file
from medexam.gc_pause import gc_paused
from medexam.questions import Task
from medexam.specs import CellSpec, DatasetSpec, ImportedSpec, build_identity, digest
from medexam_companions.harnesses.imports.account import ReadAnswers, describe_import, warn_of
from medexam_companions.harnesses.imports.choices import MOST_UNMATCHED, ChoiceForm
from medexam_companions.harnesses.imports.matching import MatchReport
from medexam_companions.harnesses.imports.reading import read_results
from medexam_companions.harnesses.imports.samples import HarnessSample, Results, ResultsError
from medexam_companions.harnesses.imports.words.form import WordsForm

NAME = "imported"
"""What the experiment of imported runs is called."""


@dataclass(frozen=True)
class Imported:
    """One run that was made of a file, or found from before."""

    run: AnyRun
    account: dict[str, Any]
    """What `environment.json` keeps of the file and of how its samples were matched."""


class _Form(Protocol):
    """Matches and reads the samples of one file, as the questions of the data set are answered."""

    def match(self, samples: Iterable[HarnessSample]) -> MatchReport:
        """Match each sample with its question."""

    def read(
        self,
        path: Path,
        results: Results,
        matched: MatchReport,
        items: Any,
        program: str,
        spec_digest: str,
        may_be_key: bool,
    ) -> ReadAnswers:
        """Make the predictions of the matched questions, which `items` holds."""


class Importer:
    """Makes runs of files, all on one data set."""

    def __init__(self, dataset: DatasetSpec, runs_dir: Path, *, most_unmatched: float = MOST_UNMATCHED) -> None:
        """Load the data set. Raises `SpecError` for examples, which hold no questions, and `DatasetError` if it cannot
        be read.
        """
        if dataset != dataset.whole:
            raise SpecError("an import is matched with the whole data set: leave out the keys that select a part of it")
        if dataset.question_form == "examples":
            raise SpecError(f"{dataset.called} holds examples of a script, not questions: name a data set of questions")
        self._dataset = dataset
        self._runs_dir = runs_dir
        self._most_unmatched = most_unmatched
        with gc_paused():
            self.items: Any = find_benchmark(dataset).load(dataset)
            in_words = isinstance(next(iter(self.items.questions), None), Task)
            self._form: _Form = WordsForm(self.items) if in_words else ChoiceForm(self.items, dataset, most_unmatched)

    def take(self, path: Path, say: Callable[[str], None], measure: str | None = None) -> Iterator[Imported]:
        """Yield the runs that a file becomes, one for each measure; only `measure` if it is named.

        Raises `ResultsError` if the file cannot be read, or too many of its samples are of no question or of its
        answers name no option.
        """
        with gc_paused():
            for results in read_results(path, measure):
                sha256 = _hash([*([] if path.is_dir() else [path]), *results.companions])
                program = ImportedSpec(
                    harness=results.harness,
                    task=results.task,
                    measure=results.measure,
                    answered_by=results.model,
                    sha256=sha256,
                    file=path.name,
                )
                cell = CellSpec(name=NAME, dataset=self._dataset, program=program)
                is_doubtful = measure is None and results.harness == "table" and results.measure == "answer"
                yield self._import(path, results, cell, say, may_be_key=is_doubtful)

    def _import(
        self, path: Path, results: Results, cell: CellSpec, say: Callable[[str], None], *, may_be_key: bool
    ) -> Imported:
        run_identity = build_identity(cell, fingerprint=self.items.fingerprint, words={})
        name = "-".join(map(name_part, [NAME, cell.program.label, cell.dataset.language, digest(run_identity)]))
        folder = RunFolder(self._runs_dir / name)
        if folder.exists():
            return Imported(current_run(folder, say), folder.read_environment()["imported"])
        matched = self._form.match(results.samples)
        self._check(path, matched)
        items = replace(
            self.items, questions=tuple(question for question in self.items.questions if question.key in matched.pairs)
        )
        read = self._form.read(path, results, matched, items, cell.program.label, digest(run_identity), may_be_key)
        account = describe_import(path, results, matched, read)
        folder.create()
        with folder.locked():
            _write_predictions(folder, read.predictions)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            times = {"started_at": now, "ended_at": now, "asked_s": 0.0, "asked": 0, "engine": None}
            folder.write_json(ENVIRONMENT, {**times, **describe_environment(), "imported": account})
            # Written last: a folder without it is no run yet.
            warnings = warn_of(results, account, read.predictions)
            begin_run(folder, _record(folder, cell, run_identity, items, warnings), items)
            return Imported(score_cell(folder, items), account)

    def _check(self, path: Path, matched: MatchReport) -> None:
        lost_count = matched.unmatched + matched.ambiguous
        if not matched.samples:
            raise ResultsError(f"{path}: holds no samples")
        if matched.pairs and lost_count <= self._most_unmatched * matched.samples:
            return
        dataset_name = f"{self._dataset.called} in {self._dataset.language}"
        advice = (
            f", or --most-unmatched {min(1.0, lost_count / matched.samples + 0.005):.2f} to take the others"
            * bool(matched.pairs)
        )
        example = f" ({matched.example!r} is the first)" if matched.example else ""
        raise ResultsError(
            f"{path}: {lost_count:,} of {matched.samples:,} samples match no question of {dataset_name}, or may be of "
            f"several{example}; name their data set by --dataset and --language{advice}"
        )


def _record(
    folder: RunFolder, cell: CellSpec, run_identity: dict[str, Any], items: Any, warnings: Sequence[str]
) -> RunRecord:
    return RunRecord(
        run_id=folder.name,
        spec_digest=digest(run_identity),
        identity=run_identity,
        cell=cell,
        description="",
        **describe_items(items),
        experiment_digest=digest({"name": NAME, "cells": [digest(run_identity)]}),
        warnings=(*items.notes, *warnings),
    )


def _write_predictions(folder: RunFolder, predictions: Sequence[Prediction]) -> None:
    with whole_file(folder.path / PREDICTIONS) as draft, draft.open("wb") as lines:
        for prediction in predictions:
            lines.write(prediction.to_line())


def _hash(paths: Sequence[Path]) -> str:
    """Compute the SHA-256 of a file, or of several files' SHA-256."""
    digests = [_hash_one(path) for path in paths]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def _hash_one(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read ({error.strerror or error}); give a file of results") from None
