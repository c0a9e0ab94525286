"""The first screen of a page: its title, one sentence of findings, and the runs' scores as points on a scale.

A strip is drawn in parts of the scale's width, so that the page can make it as wide as its window.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.findings import above_chance, lead
from medexam.experiments.report.papers.human_baseline import AgainstPeople, result
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics import Metrics
from medexam.metrics.results import Interval
from medexam.tables import decimal

STEPS = (1, 2, 5, 10, 20, 50)
"""Percent between two ticks."""
MOST_TICKS = 7


@dataclass(frozen=True)
class ScoreMark:
    """One score of one run; places are percent of the strip's width."""

    place: float
    low: float
    high: float
    chance: float | None


@dataclass(frozen=True)
class Panel:
    """One score of all runs."""

    title: str
    """Header of the column that it is drawn in."""
    ticks: tuple[tuple[float, str], ...]
    """Place and label."""
    marks: tuple[ScoreMark | None, ...]
    """One a run, None for a run that has scored no question."""


@dataclass(frozen=True)
class PeopleStrip:
    """One whole exam: the runs beside the people who sat it; places are percent of the strip's width."""

    exam: str
    runs: tuple[float, ...]
    """Places of the runs' points."""
    pass_mark: float
    ten_best: float
    text: str
    """How far the best run is from the pass mark."""


@dataclass(frozen=True)
class Overview:
    """What stands above everything else."""

    title: str
    about: str
    """What was asked of which model."""
    verdict: tuple[str, ...]
    """Which run is best and by which test, what is above chance, and what passes; empty if nothing is scored."""
    panels: Mapping[str, Panel]
    """Header of a table's column -> its panel; empty for runs whose answers are not right or wrong."""
    strips: tuple[PeopleStrip, ...]


PANEL_CAPTION = "Points in the strips: scores; lines: 95 % intervals; dotted: what choosing at random would score."


def build_overview(runs: Sequence[AnyRun], people: Sequence[Sequence[AgainstPeople]] = ()) -> Overview:
    """Build the first screen of `runs`, one or more of one family; `people`: what each scored beside people."""
    exams = runs[0].benchmark.right_or_wrong
    panels = tuple(_panels([run.metrics for run in runs])) if exams else ()
    verdict = [lead(runs), above_chance(runs), exam_verdict(runs, people)]
    return Overview(
        title=", ".join(dict.fromkeys(run.record.cell.name for run in runs)),
        about=_about(runs),
        verdict=tuple(filter(None, verdict)),
        panels={panel.title: panel for panel in panels},
        strips=tuple(_strips(people)),
    )


def exam_verdict(runs: Sequence[AnyRun], people: Sequence[Sequence[AgainstPeople]]) -> str:
    """Say which run passes which whole exam, or how much the nearest is short; `people` is as `against_people` gives.

    Empty if no run answered an exam whole whose pass mark is known.
    """
    names = run_names(runs)
    rows = [(name, row) for name, run_rows in zip(names, people, strict=False) for row in run_rows]
    if not rows:
        return ""
    name, nearest = max(rows, key=lambda pair: pair[1].margin)
    passes = sum(row.passed for _, row in rows)
    exam = f"{nearest.discipline} {nearest.year}"
    if not passes:
        subject = "No run passes an exam" if len(runs) > 1 else "It passes no exam"
        return f"{subject}: {name} in {exam} is nearest, {decimal(-nearest.margin)} points short."
    if len(rows) == 1:
        return f"It passes {exam} by {decimal(nearest.margin)} points."
    return (
        f"{passes} of {len(rows)} whole exams are passed; the widest margin is that of {name} in {exam}, "
        f"{decimal(nearest.margin)} points."
    )


def _strips(people: Sequence[Sequence[AgainstPeople]]) -> Iterator[PeopleStrip]:
    """Yield a strip for each exam, by discipline and year."""
    rows_by_exam: dict[tuple[str, int], list[AgainstPeople]] = {}
    for row in itertools.chain.from_iterable(people):
        rows_by_exam.setdefault((row.discipline, row.year), []).append(row)
    for (discipline, year), rows in sorted(rows_by_exam.items()):
        low, high = min(0.0, *(row.points for row in rows)), max(rows[0].ten_best, *(row.points for row in rows))

        def place(points: float, low: float = low, high: float = high) -> float:
            return round(100 * (points - low) / (high - low), 2)

        best = max(rows, key=lambda row: row.points)
        places = tuple(place(row.points) for row in rows)
        text = f"{'best run ' if len(rows) > 1 else ''}{result(best)}"
        yield PeopleStrip(f"{discipline} {year}", places, place(best.pass_mark), place(best.ten_best), text)


def _about(runs: Sequence[AnyRun]) -> str:
    models = list(dict.fromkeys(run.model for run in runs if run.model is not None))
    datasets = list(dict.fromkeys(run.record.cell.dataset.label for run in runs))
    questions = len({key for run in runs for key in run.record.questions})
    days = sorted(str(run.environment.get("ended_at") or "")[:10] for run in runs)
    parts = [
        models[0] if len(models) == 1 else f"{len(models)} models" if models else "",
        ", ".join(datasets),
        f"{questions:,} questions",
        f"{len(runs)} runs" if len(runs) > 1 else runs[0].program,
        days[-1],
    ]
    return " · ".join(filter(None, parts))


def _panels(metrics: Sequence[Metrics]) -> Iterator[Panel]:
    scores = [(m.accuracy, m.accuracy_interval, m.chance_accuracy) for m in metrics]
    yield from _panel("Accuracy", scores)
    yield from _panel("Exam score", [(m.exam_score, m.exam_score_interval, m.chance_exam_score) for m in metrics])


def _panel(title: str, scores: Sequence[tuple[float | None, Interval | None, float | None]]) -> Iterator[Panel]:
    """Yield the panel of these scores, fractions of 1 with interval and chance level; none if no run has one."""
    percents: list[float] = [
        100 * score
        for value, ends, by_chance in scores
        for score in (value, *(ends or ()), by_chance)
        if score is not None
    ]
    if all(value is None for value, _, _ in scores):
        return
    step = next((step for step in STEPS if (max(percents) - min(percents)) / step <= MOST_TICKS - 2), STEPS[-1])
    first, last = math.floor(min(percents) / step) * step, math.ceil(max(percents) / step) * step
    width = (last - first) or step

    def place(fraction: float) -> float:
        return float(round(100 * (100 * fraction - first) / width, 2))

    marks: list[ScoreMark | None] = []
    for value, ends, by_chance in scores:
        if value is None:
            marks.append(None)
            continue
        low, high = ends or (value, value)
        chance = None if by_chance is None else place(by_chance)
        marks.append(ScoreMark(place(value), place(low), place(high), chance))
    ticks = tuple((place(tick / 100), str(tick)) for tick in range(first, last + 1, step))
    yield Panel(title, ticks, tuple(marks))
