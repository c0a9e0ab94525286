"""The first screen of a page: its title, one sentence of findings, and the runs' scores as points on a scale.

A strip is drawn in parts of the scale's width, so that the page can make it as wide as its window.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from medexam.experiments.report.findings import above_chance, lead
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics import Metrics
from medexam.metrics.results import Interval

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
class Overview:
    """What stands above everything else."""

    title: str
    about: str
    """What was asked of which model."""
    verdict: tuple[str, ...]
    """Which run is best and by which test, and what is above chance; empty if nothing is scored."""
    panels: Mapping[str, Panel]
    """Header of a table's column -> its panel; empty for runs whose answers are not right or wrong."""


PANEL_CAPTION = "Points in the strips: scores; lines: 95 % intervals; dotted: what choosing at random would score."


def build_overview(runs: Sequence[AnyRun]) -> Overview:
    """Build the first screen of `runs`, one or more of one family."""
    exams = runs[0].benchmark.right_or_wrong
    panels = tuple(_panels([run.metrics for run in runs])) if exams else ()
    return Overview(
        title=", ".join(dict.fromkeys(run.record.cell.name for run in runs)),
        about=_about(runs),
        verdict=tuple(filter(None, [lead(runs), above_chance(runs)])),
        panels={panel.title: panel for panel in panels},
    )


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
