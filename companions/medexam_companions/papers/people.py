"""Stored runs beside the people who sat the same exams: whose points would have passed, and by how much.

The people's figures ship with the package, each with its source. A run stands beside them in an exam only if every
question that the data set has of that exam was asked and scored, for points of a part say nothing of the whole.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
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


Row = dict[str, Any]
"""One run's points in one whole exam, beside those of people, JSON-ready. `margin` is points above the pass mark."""


def set_against_people(runs: Sequence[StoredRun]) -> tuple[list[dict[str, Any]], list[Table]]:
    """Return what `--json` says of each run beside people, and the table of all; empty if nothing is known.

    A single run is not named in the table. What passed is stressed.
    """
    rows_by_run = [
        _beside_people(run, _count(run.folder, run.record.cell.dataset)) if _may_be_known(run) else [] for run in runs
    ]
    documents = [{"against_people": rows} if rows else {} for rows in rows_by_run]
    pairs = [(name, row) for name, rows in zip(run_names(runs), rows_by_run, strict=True) for row in rows]
    if not pairs:
        return documents, []
    several = len(runs) > 1
    headers = ("Run",) * several + ("Exam", "n", "Points", "Ten best", "Pass mark", "Result")
    lines = tuple((name,) * several + _cells(row) for name, row in pairs)
    best = frozenset((place, len(headers) - 1) for place, (_, row) in enumerate(pairs) if row["passed"])
    boards = load_exam_boards()
    caption = (
        f"{_verdict(pairs, several=several)} Points: 3 right - wrong. Ten best: the average of the ten best people. "
        f"Pass mark: {percent(boards['pass_share']).removesuffix('.0')} % of that, the Ministry's rule for these "
        "exams. Only exams that were asked and scored whole. At most "
        f"{boards['counted']} questions counted for people; n counts the data set's questions, spare ones included, so "
        "points are out of 3 n."
    )
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


def _beside_people(run: StoredRun, sizes: Mapping[Exam, int]) -> list[Row]:
    share, sittings, rows = load_exam_boards()["pass_share"], find_sittings(), list[Row]()
    for exam in sorted(sizes, key=lambda exam: (exam.discipline, exam.year or 0)):
        sitting, scores = sittings.get((exam.discipline, exam.year or 0)), run.metrics.by.get("exam", {}).get(exam.name)
        points = None if scores is None else scores.measure("points").value
        if sitting is not None and scores is not None and scores.n == sizes[exam] and points is not None:
            row = {"exam": exam.name, "discipline": exam.discipline, "year": sitting["year"], "n": scores.n}
            pass_mark = round(share * sitting["ten_best"], 4)
            margin = round(points - pass_mark, 4)
            row |= {"points": points, "ten_best": sitting["ten_best"], "pass_mark": pass_mark}
            rows.append(row | {"source": sitting["source"], "margin": margin, "passed": margin >= 0})
    return rows


def _name(row: Row) -> str:
    return "{discipline} {year}".format_map(row)


def _cells(row: Row) -> tuple[str, ...]:
    result = f"{'passed' if row['passed'] else 'short'} by {decimal(abs(row['margin']))}"
    return _name(row), str(row["n"]), *(decimal(row[each]) for each in ("points", "ten_best", "pass_mark")), result


def _verdict(pairs: Sequence[tuple[str, Row]], *, several: bool) -> str:
    """Say which run passes which exam, or how much the nearest is short."""
    name, nearest = max(pairs, key=lambda pair: pair[1]["margin"])
    exam, margin, passes = _name(nearest), nearest["margin"], sum(row["passed"] for _, row in pairs)
    if not passes:
        subject = "No run passes an exam" if several else "It passes no exam"
        return f"{subject}: {name} in {exam} is nearest, {decimal(-margin)} points short."
    if len(pairs) == 1:
        return f"It passes {exam} by {decimal(margin)} points."
    return (
        f"{passes} of {len(pairs)} whole exams are passed; the widest margin is that of {name} in {exam}, "
        f"{decimal(margin)} points."
    )
