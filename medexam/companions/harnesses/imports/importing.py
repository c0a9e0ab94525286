"""From a file of results to run folders: read, matched with a data set, written and scored like any run.

A run's digest covers the SHA-256 of its file, so a file that was imported before is found and not written again.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from medexam import Prediction, Question
from medexam.companions.harnesses.imports.account import describe_import, warn_of
from medexam.companions.harnesses.imports.answers import (
    ChoiceReader,
    Pair,
    as_worded,
    counts_from_zero,
    make_prediction,
)
from medexam.companions.harnesses.imports.matching import Matcher, MatchReport
from medexam.companions.harnesses.imports.reading import read_results
from medexam.companions.harnesses.imports.samples import Results, ResultsError
from medexam.toolkit.data import ExamSet, find_benchmark
from medexam.toolkit.errors import SpecError
from medexam.toolkit.files import gc_paused, name_part, whole_file
from medexam.toolkit.runs import (
    ENVIRONMENT,
    PREDICTIONS,
    AnyRun,
    RunFolder,
    RunRecord,
    current_run,
    describe_environment,
    score_cell,
)
from medexam.toolkit.specs import IDENTITY_SCHEMA, CellSpec, DatasetSpec, ImportedSpec, digest, identity

NAME = "imported"
"""What the experiment of imported runs is called."""
MANY = 5
"""Answers of a table of which not all are right, unless the table's answers are the key."""
MOST_UNMATCHED = 0.01
"""Share of a file's samples that may be of no question, unless the user says otherwise."""
MOST_UNREADABLE = 0.1
"""Share of the answers without a verdict that may name no option, unless more may be unmatched."""
_SHOWN = 3
"""Answers that a message repeats."""


@dataclass(frozen=True)
class Imported:
    """One run that was made of a file, or found from before."""

    run: AnyRun
    account: dict[str, Any]
    """What `environment.json` keeps of the file and of how its samples were matched."""


class Importer:
    """Makes runs of files, all on one data set."""

    def __init__(self, dataset: DatasetSpec, runs_dir: Path, *, most_unmatched: float = MOST_UNMATCHED) -> None:
        """Load the data set. Raises `SpecError` for one without numbered options, and `DatasetError` if it cannot be
        read.
        """
        if dataset != dataset.whole:
            raise SpecError("an import matches the whole data set: leave out what selects a part of it")
        if dataset.question_form != "choice":
            raise SpecError(f"{dataset.called} is answered in words; results are imported for numbered options alone")
        self._dataset = dataset
        self._runs_dir = runs_dir
        self._most_unmatched = most_unmatched
        with gc_paused():
            self.items: ExamSet = find_benchmark(dataset).load(dataset)
            self.matcher = Matcher(self.items.questions, self._as_published())

    def _as_published(self) -> list[Question]:
        """Load the questions of which we corrected characters, as their authors published them; usually none."""
        if not self.items.corrected:
            return []
        published = self._dataset.model_copy(update={"as_published": True})
        corrected = frozenset(self.items.corrected)
        return [
            question for question in find_benchmark(published).load(published).questions if question.key in corrected
        ]

    def take(self, path: Path, say: Callable[[str], None], measure: str | None = None) -> Iterator[Imported]:
        """Yield the runs that a file becomes, one for each measure; only `measure` if it is named.

        Raises `ResultsError` if the file cannot be read, or too many of its samples are of no question or of its
        answers name no option.
        """
        with gc_paused():
            for results in read_results(path, measure):
                sha256 = _hash([path, *results.companions])
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
        run_identity = identity(cell, fingerprint=self.items.fingerprint, words={})
        name = "-".join(map(name_part, [NAME, cell.program.label, cell.dataset.language, digest(run_identity)]))
        folder = RunFolder(self._runs_dir / name)
        if folder.exists():
            return Imported(current_run(folder, say), folder.read_environment()["imported"])
        matched = self.matcher.match(results.samples)
        self._check(path, matched)
        items = replace(
            self.items, questions=tuple(question for question in self.items.questions if question.key in matched.pairs)
        )
        pairs = self._pairs(matched, items)
        reader = ChoiceReader(pairs)
        self._check_answers(path, pairs, reader)
        predictions = [
            make_prediction(*pair, results, reader, program=cell.program.label, spec_digest=digest(run_identity))
            for pair in pairs
        ]
        right = sum(items.golds[prediction.question].accepts(prediction.answer) for prediction in predictions)
        if may_be_key and right == len(pairs) >= MANY:
            raise ResultsError(
                f"{path}: all {len(pairs):,} answers are right, so the column answer may be the key: name the column "
                "of the model's answers, such as --measure prediction; or --measure answer if it is this one"
            )
        account = describe_import(path, results, matched, pairs, reader)
        folder.create()
        with folder.locked():
            _write_predictions(folder, predictions)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            times = {"started_at": now, "ended_at": now, "asked_s": 0.0, "asked": 0, "engine": None}
            folder.write_json(ENVIRONMENT, {**times, **describe_environment(), "imported": account})
            # Written last: a folder without it is no run yet.
            folder.write_record(
                _record(folder, cell, run_identity, items, warn_of(results, account, predictions)), own=True
            )
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

    def _check_answers(self, path: Path, pairs: Sequence[Pair], reader: ChoiceReader) -> None:
        """Raise `ResultsError` if too many answers cannot be read, and no verdict says how they came out.

        Numbers that may count from 0 are none: each would be taken for the option before the one that is meant.
        """
        if counts_from_zero(pairs):
            raise ResultsError(
                f"{path}: the answers are numbers, 0 is one of them, and none is that of a last option: do they count "
                "from 0? write the printed numbers, from 1, or letters; and leave empty what was not answered"
            )
        answer_count = sum(sample.right is None for sample, _, _ in pairs)
        unreadable = [str(sample.choice) for sample in reader.unreadable if sample.right is None]
        if len(unreadable) <= max(self._most_unmatched, MOST_UNREADABLE) * answer_count:
            return
        examples = ", ".join(f"{text!r:.80}" for text in list(dict.fromkeys(unreadable))[:_SHOWN])
        raise ResultsError(
            f"{path}: {len(unreadable):,} of {answer_count:,} answers cannot be read, such as {examples}: write the "
            "printed number, the letter or the text of an option, or leave the answer empty; or --most-unmatched "
            f"{min(1.0, len(unreadable) / answer_count + 0.005):.2f} to count them as unanswered"
        )

    def _pairs(self, matched: MatchReport, items: ExamSet) -> list[Pair]:
        """Pair each question of `items`, in the words of its sample, with that and our gold."""
        published = self.matcher.published
        return [
            (sample, as_worded(sample, question, published.get(question.key)), items.golds[question.key])
            for question in items.questions
            for sample in (matched.pairs[question.key],)
        ]


def _record(
    folder: RunFolder, cell: CellSpec, run_identity: dict[str, Any], items: ExamSet, warnings: Sequence[str]
) -> RunRecord:
    return RunRecord(
        run_id=folder.name,
        schema=IDENTITY_SCHEMA,
        spec_digest=digest(run_identity),
        identity=run_identity,
        cell=cell,
        description="",
        dataset_version=items.version,
        dataset_source=items.source,
        dataset_fingerprint=items.fingerprint,
        dataset_as_published=items.published_fingerprint,
        dataset_corrected=items.corrected,
        dataset_golds=items.golds_fingerprint,
        questions=tuple(question.key for question in items.questions),
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
