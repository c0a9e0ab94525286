"""The picture of scores over dated runs: one line for each strategy, model and data set."""

from datetime import datetime
from functools import partial
from typing import Any

from medexam.experiments.report.plots.style import LINES, MARKERS, PALETTE, WIDTH, Plot, error_bars, wrap
from medexam.experiments.report.trend import Trend

NAME_WIDTH = 60
"""Characters of a line of the legend."""


def trend_plot(trend: Trend) -> Plot:
    """Plan the plot of a trend."""
    runs = sum(len(line.points) for line in trend.lines)
    caption = f"{trend.measure.replace('_', ' ').capitalize()} of {runs:,} runs over time; bars are 95 % intervals."
    return Plot("trend", caption, (WIDTH, 4.0 + 0.3 * len(trend.lines)), partial(_draw, trend=trend))


def _draw(figure: Any, trend: Trend) -> None:
    axes = figure.subplots()
    scale = 100.0 if trend.written(1.0) == "100.0" else 1.0
    for place, line in enumerate(trend.lines):
        dates = [datetime.fromisoformat(point.date) for point in line.points]
        values = [point.value for point in line.points]
        bars = error_bars([scale * value for value in values], [point.interval for point in line.points])
        axes.errorbar(
            dates,
            [scale * value for value in values],
            yerr=bars if scale > 1 else None,
            color=PALETTE[place % len(PALETTE)],
            marker=MARKERS[place % len(MARKERS)],
            linestyle=LINES[place // len(PALETTE) % len(LINES)],
            capsize=3,
            label=wrap(line.name, NAME_WIDTH),
        )
    axes.set_ylabel(trend.measure.replace("_", " ") + (", %" if scale > 1 else ""))
    axes.grid(axis="y", alpha=0.3)
    figure.autofmt_xdate()
    figure.legend(loc="outside lower center", frameon=False)
    figure.suptitle("Scores over time")
