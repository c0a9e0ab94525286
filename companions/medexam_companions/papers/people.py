"""Stored runs beside the people who sat the same exams: whose points would have passed, and by how much.

The people's figures ship with the package, each with its source. A run stands beside them in an exam only if every
question that the data set has of that exam was asked and scored, for points of a part say nothing of the whole.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
from medexam.experiments import RunFolder, StoredRun, load_items, run_names
from medexam.kept import keep
from medexam.questions import Exam
from medexam.specs import DatasetSpec
from medexam.tables import Table, decimal, percent

FILE = Path(__file__).parent / "published" / "exam_boards.yaml"


@cache
def load_exam_boards() -> dict[str, Any]:
    """Load what the data file says of the people, and the rule by which they passed."""
    boards: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return boards


def find_sittings() -> dict[tuple[str, int], dict[str, Any]]:
    """Map discipline and year, that in which an exam was called, to what is known of the people in it."""
    return {(each["discipline"], each["year"]): each for each in load_exam_boards()["sittings"]}


@dataclass(frozen=True)
class AgainstPeople:
    """One run's points in one whole exam, beside those of people."""

    exam: str
    """The booklet's name."""
    discipline: str
    year: int
    n: int
    """Questions that the data set has of the exam, all of them scored."""
    points: float
    """3 right - wrong, at most 3 n."""
    ten_best: float
    """The average of the ten best people, in points."""
    pass_mark: float
    """In points."""
    source: str
    """The page that states `ten_best`."""

    @property
    def margin(self) -> float:
        """Points above the pass mark; negative below it."""
        return round(self.points - self.pass_mark, 4)

    @property
    def passed(self) -> bool:
        """Whether the points reach the pass mark."""
        return self.margin >= 0

    @property
    def label(self) -> str:
        """What tables call the exam."""
        return f"{self.discipline} {self.year}"

    def document(self) -> dict[str, Any]:
        """Return all of it, JSON-ready."""
        return asdict(self) | {"margin": self.margin, "passed": self.passed}


def set_against_people(runs: Sequence[StoredRun]) -> tuple[list[dict[str, Any]], list[Table]]:
    """Return what `--json` says of each run beside people, and the table of all; empty if nothing is known.

    A single run is not named in the table. What passed is stressed.
    """
    rows_by_run = [
        _beside_people(run, _count(run.folder, run.record.cell.dataset)) if _may_be_known(run) else [] for run in runs
    ]
    documents = [{"against_people": [row.document() for row in rows]} if rows else {} for rows in rows_by_run]
    pairs = [(name, row) for name, rows in zip(run_names(runs), rows_by_run, strict=True) for row in rows]
    if not pairs:
        return documents, []
    several = len(runs) > 1
    headers = ("Run",) * several + ("Exam", "n", "Points", "Ten best", "Pass mark", "Result")
    lines = tuple((name,) * several + _cells(row) for name, row in pairs)
    best = frozenset((place, len(headers) - 1) for place, (_, row) in enumerate(pairs) if row.passed)
    caption = f"{_verdict(pairs, several=several)} {_caption()}"
    table = Table("Against people", headers, lines, best, text_columns=1 + several, caption=caption)
    return documents, [table]


def _may_be_known(run: StoredRun) -> bool:
    """Return whether a look at the data set can find anything."""
    dataset, metrics = run.record.cell.dataset, run.metrics
    return (
        run.benchmark.right_or_wrong
        and dataset.alter is None
        and dataset.name in load_exam_boards()["datasets"]
        and any(
            name in metrics.by.get("discipline", {}) and str(year) in metrics.by.get("year", {})
            for name, year in find_sittings()
        )
    )


@keep(worth=lambda _: True)
def _count(folder: RunFolder, dataset: DatasetSpec) -> Mapping[Exam, int]:
    """Count how many questions the data set has of each exam that the run asked; empty where it is not at hand."""
    # All other filters leave exams whole.
    is_cut = dataset.limit or dataset.option_counts or dataset.images != "all"
    try:
        items = load_exam_set(dataset.whole) if is_cut else load_items(folder)
    except DatasetError:
        return {}
    return Counter(question.exam for question in items.questions)


def _beside_people(run: StoredRun, sizes: Mapping[Exam, int]) -> list[AgainstPeople]:
    share, sittings, rows = load_exam_boards()["pass_share"], find_sittings(), []
    for exam in sorted(sizes, key=lambda exam: (exam.discipline, exam.year or 0)):
        sitting, scores = sittings.get((exam.discipline, exam.year or 0)), run.metrics.by.get("exam", {}).get(exam.name)
        points = None if scores is None else scores.measure("points").value
        if sitting is not None and scores is not None and scores.n == sizes[exam] and points is not None:
            best = sitting["ten_best"]
            rows.append(
                AgainstPeople(
                    exam=exam.name,
                    discipline=exam.discipline,
                    year=sitting["year"],
                    n=scores.n,
                    points=points,
                    ten_best=best,
                    pass_mark=round(share * best, 4),
                    source=sitting["source"],
                )
            )
    return rows


def _cells(row: AgainstPeople) -> tuple[str, ...]:
    result = f"{'passed' if row.passed else 'short'} by {decimal(abs(row.margin))}"
    return (row.label, str(row.n), decimal(row.points), decimal(row.ten_best), decimal(row.pass_mark), result)


def _verdict(pairs: Sequence[tuple[str, AgainstPeople]], *, several: bool) -> str:
    """Say which run passes which exam, or how much the nearest is short."""
    name, nearest = max(pairs, key=lambda pair: pair[1].margin)
    passes = sum(row.passed for _, row in pairs)
    if not passes:
        subject = "No run passes an exam" if several else "It passes no exam"
        return f"{subject}: {name} in {nearest.label} is nearest, {decimal(-nearest.margin)} points short."
    if len(pairs) == 1:
        return f"It passes {nearest.label} by {decimal(nearest.margin)} points."
    return (
        f"{passes} of {len(pairs)} whole exams are passed; the widest margin is that of {name} in {nearest.label}, "
        f"{decimal(nearest.margin)} points."
    )


def _caption() -> str:
    boards = load_exam_boards()
    return (
        "Points: 3 right - wrong. Ten best: the average of the ten best people. Pass mark: "
        f"{percent(boards['pass_share']).removesuffix('.0')} % of that, the Ministry's rule for these exams. Only "
        f"exams that were asked and scored whole. At most {boards['counted']} questions counted for people; n counts "
        "the data set's questions, spare ones included, so points are out of 3 n."
    )
