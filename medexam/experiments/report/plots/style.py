"""One look for all pictures of runs: colours, markers, intervals, headings and legends.

The colours are those of Okabe and Ito, which colour blind readers can tell apart; markers tell runs apart without them.
"""

import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments.compare.ranking import describe_difference
from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.results import Interval

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, without its yellow, which is too pale on white."""
GREY = "#737373"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":")
WIDTH = 9.5
"""Inches of a picture."""
CHANCE: dict[str, Any] = {"color": GREY, "linestyle": (0, (1, 1.5)), "linewidth": 1.4}
"""How the chance level is drawn."""
BARS: dict[str, Any] = {"markersize": 5, "capsize": 2, "elinewidth": 0.9, "linewidth": 1.5}
"""How points with intervals are drawn."""


@dataclass(frozen=True)
class Plot:
    """A picture that is not drawn yet."""

    name: str
    """Name of the file, without its ending."""
    caption: str
    """One or two sentences: what is drawn, of how many questions, and what the intervals are."""
    size: tuple[float, float]
    """Width and height in inches."""
    draw: Callable[[Any], None]
    """Draws on an empty matplotlib figure."""


@dataclass(frozen=True, eq=False)
class RunStyle:
    """One run as it looks in all pictures."""

    run: StoredRun
    name: str
    """What tells the run from the others."""
    line: Mapping[str, Any]
    """Its colour, marker and line style, in matplotlib's words."""

    @property
    def n(self) -> int:
        """How many questions are scored."""
        return self.run.metrics.n


def looks(runs: Sequence[StoredRun]) -> list[RunStyle]:
    """Return the look of each run, in their order.

    Among runs of several models a colour is a model and a marker a strategy, unless two runs would look alike.
    """
    models, programs = [*dict.fromkeys(run.model for run in runs)], [*dict.fromkeys(run.program for run in runs)]
    styles = [(models.index(run.model), programs.index(run.program), 0) for run in runs]
    if len({*models} - {None}) < 2 or len(set(styles)) < len(runs):
        styles = [(at, at, at // len(PALETTE)) for at in range(len(runs))]
    cycles = (("color", PALETTE), ("marker", MARKERS), ("linestyle", LINES))
    lines = [{key: cycle[at % len(cycle)] for (key, cycle), at in zip(cycles, style, strict=True)} for style in styles]
    return [RunStyle(run, name, line) for run, name, line in zip(runs, run_names(runs), lines, strict=True)]


def plan(
    name: str,
    title: str,
    caption: str,
    size: tuple[float, float],
    run_looks: Collection[RunStyle],
    draw: Callable[[Any], None],
    legend: Sequence[tuple[Mapping[str, Any], str]] = (),
) -> Plot:
    """Plan a picture between a heading, with what all runs share, and a legend of lines with their labels.

    The heading says how the questions of the runs differ.
    """
    width, height = size
    labels = [wrap(label, 64) for _, label in legend]
    longest = max((len(line) for label in labels for line in label.split("\n")), default=0)
    columns = max(1, min(len(labels), int(118 // (longest + 9)), 4))
    runs = [look.run for look in run_looks]
    cells = [(run.model, run.record.cell.dataset.name, run.record.cell.dataset.language) for run in runs]
    shared = " ".join(str(value) for value, *others in zip(*cells, strict=True) if value and {*others} <= {value})

    def draw_all(figure: Any) -> None:
        from matplotlib.lines import Line2D

        draw(figure)
        heading = [f"{title} · {shared}" if shared else title]
        if (difference := describe_difference(runs)) is not None:
            heading.append(f"Not ranked: the runs asked {difference}.")
        figure.suptitle("\n".join(wrap(line, int(9 * width)) for line in heading))
        samples = [Line2D([], [], **line) for line, _ in legend]
        if samples:
            figure.legend(samples, labels, loc="outside lower center", ncols=columns, frameon=False, handlelength=3)

    lines = sum(label.count("\n") + 1 for label in labels)
    return Plot(name, caption, (width, height + 0.2 * -(-lines // columns)), draw_all)


def wrap(text: str, width: int) -> str:
    """Break `text` into lines of at most `width` characters, at blanks and hyphens first."""
    return "\n".join(textwrap.wrap(text, width)) or text


def span(counts: Collection[int]) -> str:
    """Write the counts as `6,765`, or as the range `1,020 to 6,765`."""
    low, high = min(counts), max(counts)
    return f"{high:,}" if low == high else f"{low:,} to {high:,}"


def describe_n(counts: Collection[int]) -> str:
    """Describe the scored questions of each run as `n = 6,765 questions a run`."""
    return f"n = {span(counts)} questions{' a run' * (len(counts) > 1)}"


def with_bars(points: Sequence[tuple[float, Interval | None]]) -> tuple[list[float], list[list[float]]]:
    """Return fractions of 1 in percent, and how far the ends of their intervals are below and above."""
    ends = [(100 * value, *(100 * end for end in interval or (value, value))) for value, interval in points]
    bars = [[max(0.0, value - low) for value, low, _ in ends], [max(0.0, high - value) for value, _, high in ends]]
    return [value for value, _, _ in ends], bars


def split_panels(figure: Any, count: int, columns: int) -> Any:
    """Split the figure into `count` panels of the same axes, `columns` side by side."""
    grid = figure.subplots(-(-count // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.set_visible(False)
    for axes in grid[:count]:
        axes.xaxis.set_tick_params(labelbottom=True)
    return grid[:count]
