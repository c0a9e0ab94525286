"""From a file of results to run folders: read, matched with a data set, written and scored like any run.

A run's digest covers the SHA-256 of its file, so a file that was imported before is found and not written again. What
became of every sample is stored with the run: none is left out silently.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from medexam import Prediction
from medexam.errors import SpecError
from medexam.experiments import RunFolder, StoredRun, current_run, describe_environment, write_run
from medexam.measures import find_benchmark
from medexam.predictions import Reason
from medexam.process import gc_seldom
from medexam.specs import CellSpec, DatasetSpec, build_identity, digest
from medexam.text import count_of
from medexam.weights import hash_files
from medexam_companions.harnesses.imports.answers import read_choices, read_words
from medexam_companions.harnesses.imports.matching import Matcher, MatchReport, loose
from medexam_companions.harnesses.imports.reading import read_results
from medexam_companions.harnesses.imports.samples import Results, ResultsError
from medexam_companions.harnesses.imports.submission import is_submission

NAME = "imported"
"""What the experiment of imported runs is called."""
MOST_UNMATCHED = 0.01
"""Share of a file's samples that may be of no question, unless the user says otherwise."""
MANY = 5
"""Answers of a table of which not all are right, unless the table's answers are the key."""
_LEFT_OUT = {
    "unmatched": "match no question",
    "ambiguous": "may be of several questions",
    "repeated": "are further ones of the same question",
    "failed": "could not be asked or scored there",
}
"""Count of samples that are left out -> what is said of them."""


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
        self.items: Any = find_benchmark(dataset).load(dataset)
        corrected = frozenset(getattr(self.items, "corrected", ()))
        # Other copies hold the questions of which we corrected characters as their authors published them.
        published = dataset.model_copy(update={"as_published": True})
        others = find_benchmark(published).load(published).questions if corrected else ()
        self._matcher = Matcher(self.items.questions, [each for each in others if each.key in corrected])

    @staticmethod
    def recognises(path: Path) -> bool:
        """Return whether this importer reads a file, or says what is wrong with it."""
        return path.is_file() or is_submission(path)

    def take(self, path: Path, say: Callable[[str], None], measure: str | None = None) -> Iterator[StoredRun]:
        """Yield the runs that a file becomes, one for each measure; only `measure` if it is named.

        Raises `ResultsError` if the file cannot be read, or too many of its samples are of no question or of its
        answers name no option.
        """
        with gc_seldom():
            for results in read_results(path, measure):
                hashes = hash_files([*([] if path.is_dir() else [path]), *results.companions])
                program: Any = {
                    "kind": "imported",
                    "harness": results.harness,
                    "task": results.task,
                    "measure": results.measure,
                    "answered_by": results.model,
                    "sha256": hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest(),
                    "file": path.name,
                }
                cell = CellSpec(name=NAME, dataset=self._dataset, program=program)
                is_doubtful = measure is None and results.harness == "table" and results.measure == "answer"
                yield self._import(path, results, cell, say, may_be_key=is_doubtful)

    def _import(
        self, path: Path, results: Results, cell: CellSpec, say: Callable[[str], None], *, may_be_key: bool
    ) -> StoredRun:
        run_identity = build_identity(cell, fingerprint=self.items.fingerprint, words={})
        words = [NAME, cell.program.label, cell.dataset.language]
        folder = RunFolder.last_or_new(words, digest(run_identity), self._runs_dir, fresh=False)
        if folder.exists():
            return current_run(folder, say)
        matched = self._matcher.match(results.samples)
        self._check_matches(path, matched)
        items = replace(
            self.items, questions=tuple(question for question in self.items.questions if question.key in matched.pairs)
        )
        fields = {"program": cell.program.label, "spec_digest": digest(run_identity)}
        if self.items.in_words:
            predictions, unreadable, other_gold = read_words(results, matched.pairs, items, fields)
        else:
            predictions, unreadable, other_gold = read_choices(
                path, results, matched.pairs, items, self._most_unmatched, fields
            )
        if may_be_key and len(predictions) >= MANY and all(map(self._is_expected, predictions)):
            raise ResultsError(
                f"{path}: all {len(predictions):,} answers are right, so the column answer may be the key: name the "
                "column of the model's answers, such as --measure prediction, or --measure answer if this is the one"
            )
        counts = {**matched.counts(), "unreadable": unreadable, "other_gold": other_gold}
        harness = results.title if results.version is None else f"{results.title} {results.version}"
        account = {
            "file": str(path),
            "stated": results.stated,
            "notes": list(results.notes),
            "protocol": {"harness": harness, **{name: line for name, line in results.protocol.items() if line}},
            **counts,
        }
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        times = {"started_at": now, "ended_at": now, "asked_s": 0.0, "asked": 0, "engine": None}
        return write_run(
            *(folder, items, predictions),
            {**times, **describe_environment(), "imported": account},
            identity=run_identity,
            cell=cell,
            warnings=(*items.notes, *_warnings(results, counts, predictions)),
        )

    def _is_expected(self, prediction: Prediction) -> bool:
        gold = self.items.golds[prediction.question]
        if not self.items.in_words:
            return bool(gold.accepts(prediction.answer))
        return loose(prediction.text or "") in {*map(loose, gold.answers), loose(" ".join(gold.answers))}

    def _check_matches(self, path: Path, matched: MatchReport) -> None:
        counts = matched.counts()
        total, lost = counts["samples"], counts["unmatched"] + counts["ambiguous"]
        if not total:
            raise ResultsError(f"{path}: holds no samples")
        if matched.pairs and lost <= self._most_unmatched * total:
            return
        advice = f", or --most-unmatched {min(1.0, lost / total + 0.005):.2f} to take the others"
        example = f" ({matched.example!r} is the first)" if matched.example else ""
        raise ResultsError(
            f"{path}: {lost:,} of {total:,} samples match no question of {self._dataset.called} in "
            f"{self._dataset.language}, or may be of several{example}; name their data set by --dataset and --language"
            f"{advice if matched.pairs else ''}"
        )


def _warnings(results: Results, counts: Mapping[str, Any], predictions: Sequence[Prediction]) -> list[str]:
    """List what a reader of the run's scores should know."""
    warnings = list(results.notes)
    losses = [f"{counts[name]:,} {word}" for name, word in _LEFT_OUT.items() if counts[name]]
    if losses:
        warnings.append(f"of {counts['samples']:,} samples in the file {', '.join(losses)}; they are not counted")
    if counts["other_gold"]:
        question_count = count_of(counts["other_gold"], "question")
        warnings.append(f"the file and the data set have different right answers to {question_count}")
    if counts["unreadable"]:
        warnings.append(f"unreadable answers in the file count as unanswered: {counts['unreadable']:,}")
    if untold_count := sum(prediction.reason is Reason.NOT_TOLD for prediction in predictions):
        warnings.append(
            f"the file marks {count_of(untold_count, 'answer')} only as wrong: counted as unanswered, so "
            "accuracy is the harness's own, but exam score and points are too high"
        )
    return warnings
