"""Submissions with their scores: outputs of a participant's container, or runs that medexam has asked itself."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medexam import Prediction
from medexam.cli import read_current
from medexam.errors import SpecError
from medexam.experiments import StoredRun, find_runs
from medexam.measures import find_benchmark
from medexam.predictions import Reason, Status
from medexam.specs import DatasetSpec
from medexam.tables import NONE, Table, percent
from medexam.text import print_notice
from medexam_companions.harnesses import is_submission, take_files

BENCHMARK = "cliniqlink"
Missing = Literal["leave-out", "zero"]
"""What becomes of questions that a submission does not hold: left out, as the released scorer does, or unanswered."""


@dataclass(frozen=True)
class Submission:
    """One submission, scored."""

    name: str
    """The folder's name; of a run that medexam asked, its program and model."""
    run: StoredRun
    items: Any
    """The tasks that are scored, with what is expected."""
    predictions: dict[str, Prediction]
    metrics: Any
    """`Metrics` over `items`."""
    absent: tuple[str, ...]
    """Keys of the data set's questions that the submission does not hold."""
    notes: tuple[str, ...]
    """What is wrong with the files, and what a reader of the scores should know."""


def read_submissions(paths: Sequence[Path], data: Path | None, runs_dir: Path, missing: Missing) -> list[Submission]:
    """Read submissions, folders that hold some, and runs of ClinIQLink; submissions become runs in `runs_dir`.

    `data` is the folder of the questions, by default that of the data set. Questions that one lacks are said. Raises
    `SpecError` if there is no submission, or if a run is of another benchmark, and `DatasetError` if files cannot be
    read or matched.
    """
    by_path = {
        path: list(
            filter(is_submission, [path] if is_submission(path) or not path.is_dir() else sorted(path.iterdir()))
        )
        for path in paths
    }
    folders = [folder for inside in by_path.values() for folder in inside]
    runs: list[tuple[str, StoredRun]] = []
    if folders:
        imports = take_files(folders, DatasetSpec(name=BENCHMARK, path=data), runs_dir)
        runs += [(folder.resolve().name, run) for folder, (run,) in zip(folders, imports, strict=True)]
    others = [path for path, inside in by_path.items() if not inside]
    for run in read_current(find_runs(others, runs_dir)):
        program: Any = run.record.cell.program
        label = " ".join(filter(None, (run.program, run.model)))
        runs.append((str(program.task) if program.kind == "imported" else label, run))
    for name, run in runs:
        if run.record.cell.dataset.called != BENCHMARK:
            raise SpecError(f"{name} answers {run.record.cell.dataset.called}, not {BENCHMARK}: leave it out")
    if not runs:
        raise SpecError(f"{paths[0]} holds no submission: give a folder with true_false.json and the others")
    return [_score(name, run, missing) for name, run in runs]


def _score(name: str, run: StoredRun, missing: Missing) -> Submission:
    """Score a run on what it holds, or on the whole data set."""
    dataset = run.record.cell.dataset
    benchmark = find_benchmark(dataset)
    every = benchmark.load(dataset.whole)
    keys = set(run.record.questions)
    absent = tuple(task.key for task in every.questions if task.key not in keys)
    predictions, notes = dict(run.folder.read_predictions()), run.record.warnings
    if absent:
        way = {
            "zero": "they count as unanswered",
            "leave-out": "they are left out, as the released scorer does (--missing zero counts them as unanswered)",
        }[missing]
        lack = f"{name}: {len(absent):,} of the data set's {len(every.questions):,} questions are not in it: {way}"
        notes = (*notes, lack)
        print_notice(f"warning: {lack}")
    if missing == "leave-out" or not absent:
        return Submission(name, run, every.only(run.record.questions), predictions, run.metrics, absent, notes)
    fields: dict[str, Any] = {
        "program": run.program,
        "spec_digest": run.record.spec_digest,
        "status": Status.UNANSWERED,
        "reason": Reason.EMPTY,
    }
    predictions |= {key: Prediction(question=key, **fields) for key in absent}
    return Submission(name, run, every, predictions, benchmark.score(every, predictions).metrics, absent, notes)


def format_table(submission: Submission) -> Table:
    """Show the scores of each format by both profiles, and what its closed answers lose by their form alone."""
    headers = ("Format", "n", "No answer", "Published", "Paper", "Lost by form", "BLEU", "METEOR", "ROUGE")
    unanswered: defaultdict[str, int] = defaultdict(int)
    for task in submission.items.questions:
        prediction = submission.predictions.get(task.key)
        unanswered[task.group] += prediction is None or prediction.text is None
    rows = []
    for group, scores in submission.metrics.by["group"].items():
        measures = scores.measures
        values = {name: measure.value for name, measure in measures.items()}
        kind, strict = values.get("published_forgiving"), values["published"]
        lost = NONE if kind is None or strict is None else percent(kind - strict)
        rows.append(
            (
                group,
                f"{measures['published'].n:,}",
                f"{unanswered[group]:,}",
                percent(strict),
                percent(values["paper"]),
                lost,
                *(percent(values.get(name)) for name in ("bleu", "meteor", "rouge")),
            )
        )
    overall = {name: percent(measure.value) for name, measure in submission.metrics.measures.items()}
    caption = (
        "Percent: overall {published} by the released code's rules, {paper} by the paper's; {published_forgiving} and "
        "{paper_forgiving} if the form of closed answers did not count. Lost by form: what closed answers would gain "
        "if their form did not count."
    ).format_map(overall)
    return Table("By format", headers, tuple(rows), caption=caption)
