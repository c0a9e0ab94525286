"""Submissions with their scores: outputs of a participant's container, or runs that medexam has asked itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medexam import Prediction
from medexam.benchmarks import find_benchmark
from medexam.cli import ImportSettings, read_current, take_files
from medexam.errors import SpecError
from medexam.experiments import AnyRun, find_runs, run_paths
from medexam.predictions import Reason, Status
from medexam_companions.harnesses.imports.words.submission import is_submission

BENCHMARK = "cliniqlink"
Missing = Literal["leave-out", "zero"]
"""What becomes of questions that a submission does not hold: left out, as the released scorer does, or unanswered."""


@dataclass(frozen=True)
class Submission:
    """One submission, scored."""

    name: str
    """The folder's name; of a run that medexam asked, its program and model."""
    run: AnyRun
    items: Any
    """The tasks that are scored, with what is expected."""
    predictions: dict[str, Prediction]
    metrics: Any
    """`TaskMetrics` over `items`."""
    absent: tuple[str, ...]
    """Keys of the data set's questions that the submission does not hold."""
    missing: Missing

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the files, and what a reader of the scores should know."""
        return self.run.record.warnings

    @property
    def coverage(self) -> str | None:
        """What is said of the questions that it does not hold; None if it holds all."""
        if not self.absent:
            return None
        total = len(self.absent) + len(set(self.predictions) - set(self.absent))
        way = (
            "they count as unanswered"
            if self.missing == "zero"
            else "they are left out, as the released scorer does (--missing zero counts them as unanswered)"
        )
        return f"{self.name}: {len(self.absent):,} of the data set's {total:,} questions are not in it: {way}"


def read_submissions(paths: Sequence[Path], data: Path | None, runs_dir: Path, missing: Missing) -> list[Submission]:
    """Read submissions, folders that hold some, and runs of ClinIQLink; submissions become runs in `runs_dir`.

    `data` is the folder of the questions, by default that of the data set. Raises `SpecError` if there is none, or if
    a run is of another benchmark, and `DatasetError` if files cannot be read or matched.
    """
    folders = [folder for path in paths for folder in _submission_folders(path)]
    others = [path for path in paths if not any(_submission_folders(path))]
    runs: list[tuple[str, AnyRun]] = []
    if folders:
        overrides = () if data is None else (f"path={data}",)
        settings = ImportSettings(dataset=BENCHMARK, overrides=overrides)
        imports = take_files(folders, settings, runs_dir)
        runs += [(folder.resolve().name, entry.run) for folder, (entry,) in zip(folders, imports, strict=True)]
    if others:
        stored = read_current(find_runs(run_paths(others, runs_dir)))
        runs += [(_name_run(run), run) for run in stored]
    for name, run in runs:
        if run.record.cell.dataset.called != BENCHMARK:
            raise SpecError(f"{name} answers {run.record.cell.dataset.called}, not {BENCHMARK}: leave it out")
    if not runs:
        raise SpecError(f"{paths[0]} holds no submission: give a folder with true_false.json and the others")
    return [_score(name, run, missing) for name, run in runs]


def _submission_folders(path: Path) -> Iterator[Path]:
    if is_submission(path):
        yield path
    elif path.is_dir():
        yield from (folder for folder in sorted(path.iterdir()) if is_submission(folder))


def _name_run(run: AnyRun) -> str:
    program: Any = run.record.cell.program
    if program.kind == "imported":
        return str(program.task)
    return " ".join(filter(None, (run.program, run.model)))


def _score(name: str, run: AnyRun, missing: Missing) -> Submission:
    """Score a run on what it holds, or on the whole data set."""
    dataset = run.record.cell.dataset
    benchmark = find_benchmark(dataset)
    whole = benchmark.load(dataset.whole)
    held = set(run.record.questions)
    absent = tuple(task.key for task in whole.questions if task.key not in held)
    predictions = run.folder.read_predictions()
    if missing == "leave-out" or not absent:
        items = whole.only(run.record.questions)
        return Submission(name, run, items, predictions, run.metrics, absent, missing)
    fields: dict[str, Any] = {"program": run.program, "spec_digest": run.record.spec_digest}
    fields |= {"status": Status.UNANSWERED, "reason": Reason.EMPTY}
    predictions |= {key: Prediction(question=key, **fields) for key in absent}
    metrics = benchmark.score(whole, predictions).metrics
    return Submission(name, run, whole, predictions, metrics, absent, missing)
