"""The picture of strategies side by side: accuracy and exam score of each run, below the model that it asks.

Controls ask no model and stand below a heading of their own, or without one if there is nothing else.
"""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from medexam.benchmarks.resampling import describe_resampling
from medexam.distributions import WILSON
from medexam.experiments.report.plots.style import (
    CHANCE,
    WIDTH,
    Plot,
    RunStyle,
    by_model,
    chance_sample,
    describe_n,
    error_bars,
    wrap,
    write_title,
)
from medexam.metrics import Metrics
from medexam.metrics.results import Interval
from medexam.tables import percent, with_interval

ROW_HEIGHT = 0.4
"""Inches of a run's row, and of a heading's."""
NAME_WIDTH = 34
"""Characters of a line of a run's name."""

ChartRow = tuple[str, RunStyle | None]
"""A run's name and look, or a heading and None."""


def strategies_plot(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan the plot of these runs; None where none has scored a question."""
    counts = [look.run.metrics.n for look in run_looks if look.run.metrics.n]
    if not counts:
        return None
    rows = _rows(run_looks)
    resamplings = (look.run.metrics.exam_score_resampled for look in run_looks if look.run.metrics.n)
    resampling_note = describe_resampling(resamplings, "bootstrap", run_looks[0].run.benchmark.clusters)
    caption = (
        f"Accuracy and exam score of each run, {describe_n(counts)}; bars are 95 % intervals (accuracy: {WILSON}; exam "
        f"score: {resampling_note}). Dotted marks: what choosing at random would score on the same questions."
    )
    height = 1.4 + ROW_HEIGHT * sum(_share(row) for row in rows)
    return Plot("strategies", caption, (WIDTH, height), partial(_draw, run_looks=run_looks, rows=rows))


def _rows(run_looks: Sequence[RunStyle]) -> list[ChartRow]:
    groups = by_model(run_looks)
    rows: list[ChartRow] = []
    for model, group in groups.items():
        if len(groups) > 1:
            rows.append((wrap(model or "no model asked", NAME_WIDTH), None))
        rows += [(f"{wrap(look.name, NAME_WIDTH)}\nn = {look.run.metrics.n:,}", look) for look in group]
    return rows


def _share(row: ChartRow) -> float:
    """Return the row's height, where that of a name in one line is 1."""
    return max(1.0, 0.55 * (1 + row[0].count("\n")))


def _draw(figure: Any, run_looks: Sequence[RunStyle], rows: Sequence[ChartRow]) -> None:
    accuracy_axes, score_axes = figure.subplots(1, 2, sharey=True)
    ends = list(accumulate((-_share(row) for row in rows), initial=0.0))
    places = [(top + bottom) / 2 for top, bottom in pairwise(ends)]
    for place, (_, look) in zip(places, rows, strict=True):
        if look is None:
            continue
        m: Metrics = look.run.metrics
        _point(accuracy_axes, look, place, m.accuracy, m.accuracy_interval, m.chance_accuracy)
        _point(score_axes, look, place, m.exam_score, m.exam_score_interval, m.chance_exam_score)
    accuracy_axes.set_yticks(places, [name for name, _ in rows])
    for text, (_, look) in zip(accuracy_axes.get_yticklabels(), rows, strict=True):
        text.set_fontweight("bold" if look is None else "normal")
    accuracy_axes.set_ylim(ends[-1] - 0.1, 0.1)
    for axes, name in ((accuracy_axes, "accuracy, %"), (score_axes, "exam score, %")):
        axes.set_xlabel(name)
        axes.grid(axis="x", alpha=0.3)
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.08)
    score_axes.axvline(0, color="0.8", linewidth=0.8, zorder=0)
    figure.legend([chance_sample()], ["chance"], loc="outside lower center", frameon=False)
    write_title(figure, "Strategies side by side", run_looks)


def _point(
    axes: Any, look: RunStyle, place: float, value: float | None, interval: Interval | None, chance: float | None
) -> None:
    """Draw one run's score with its interval, its number at the right edge, and the chance level behind it."""
    score_text = with_interval(percent(value), interval).replace(" [", "\n[")
    axes.text(1.02, place, score_text, transform=axes.get_yaxis_transform(), va="center", fontsize="small")
    if value is None:
        return
    bars = error_bars([100 * value], [interval])
    axes.errorbar(
        [100 * value], [place], xerr=bars, color=look.color, marker=look.marker, markersize=7, capsize=3, linestyle=""
    )
    if chance is not None:
        axes.vlines(100 * chance, place - 0.36, place + 0.36, zorder=1, **CHANCE)
