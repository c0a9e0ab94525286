"""One look for all pictures of runs: colours, markers, names, intervals and legends.

A run keeps its colour, marker and line from picture to picture; where models stand apart, in panels or rows of their
own, a strategy looks the same below each of them. The colours are those of Okabe and Ito, which colour blind readers
can tell apart, and markers and lines tell runs apart without them. It draws nothing of its own accord.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medexam.experiments.compare.ranking import describe_difference
from medexam.experiments.compare.runs import mark_mixed, run_names
from medexam.experiments.store.stored_run import ExamRun
from medexam.metrics.results import Interval, Scores
from medexam.predictions.evidence.passages import ScoreQuartile

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, without its yellow, which is too pale on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":")
"""One line style for each time that the palette is gone through."""
GREY = "0.45"
TITLE_CHARACTERS = 9.0
"""Of a title, in an inch."""
WIDTH = 9.5
"""Inches of every picture."""
CHANCE: dict[str, Any] = {"color": GREY, "linestyle": (0, (1, 1.5)), "linewidth": 1.4}
"""How the chance level is drawn."""

Draw = Callable[[Any], None]
"""Draws on an empty matplotlib figure."""


@dataclass(frozen=True)
class Plot:
    """A picture that is not drawn yet."""

    name: str
    """Name of the file, without its ending."""
    caption: str
    """One or two sentences: what is drawn, of how many questions, and what the intervals are."""
    size: tuple[float, float]
    """Width and height in inches."""
    draw: Draw


@dataclass(frozen=True)
class RunStyle:
    """One run as it looks in all pictures."""

    run: ExamRun
    name: str
    """What tells the run from the others."""
    color: str
    marker: str
    line: Any
    """What matplotlib takes for a line style."""

    @property
    def language(self) -> str:
        """The language of its questions."""
        return str(self.run.record.cell.dataset.language)


def looks(runs: Sequence[ExamRun]) -> list[RunStyle]:
    """Return the look of each run, in their order."""
    return [_look(run, name, position) for position, (run, name) in enumerate(zip(runs, run_names(runs), strict=True))]


def by_model(run_looks: Sequence[RunStyle]) -> dict[str | None, list[RunStyle]]:
    """Group the runs by model in the order of their first; those that ask no model last, under None.

    Runs of several models are named by their strategy, which looks alike below each; but not if a model has two runs
    of one strategy.
    """
    groups: dict[str | None, list[RunStyle]] = {}
    for look in _by_strategy(run_looks):
        groups.setdefault(look.run.model, []).append(look)
    controls = groups.pop(None, None)
    return groups if controls is None else {**groups, None: controls}


def _look(run: ExamRun, name: str, position: int) -> RunStyle:
    color, marker = PALETTE[position % len(PALETTE)], MARKERS[position % len(MARKERS)]
    return RunStyle(run, name, color, marker, LINES[position // len(PALETTE) % len(LINES)])


def _by_strategy(run_looks: Sequence[RunStyle]) -> list[RunStyle]:
    languages = {look.language for look in run_looks}

    def strategy(run: ExamRun) -> str:
        name = run.program if len(languages) == 1 else f"{run.program} {run.record.cell.dataset.language}"
        return mark_mixed(run, name)

    names = [strategy(look.run) for look in run_looks]
    if len({(name, look.run.model) for name, look in zip(names, run_looks, strict=True)}) < len(names):
        return list(run_looks)
    if len(set(names)) == len(names):
        return [replace(look, name=name) for name, look in zip(names, run_looks, strict=True)]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return [_look(look.run, name, places[name]) for name, look in zip(names, run_looks, strict=True)]


def shared(run_looks: Sequence[RunStyle]) -> str:
    """Name the model, data set and language that all of the runs share, for a title; empty where they share none."""
    names = []
    for values in (
        {look.run.model for look in run_looks},
        {look.run.record.cell.dataset.name for look in run_looks},
        {look.language for look in run_looks},
    ):
        if len(values) == 1:
            names += [str(value) for value in values if value is not None]
    return " ".join(names)


def write_title(figure: Any, text: str, run_looks: Sequence[RunStyle], *, same_questions: bool = False) -> None:
    """Write `text` above the picture, and behind it what all runs share; below, how the questions that they asked
    differ.

    `same_questions` says that the picture shows only those that all runs have scored.
    """
    lines = [" · ".join(filter(None, (text, shared(run_looks))))]
    difference = None if same_questions else describe_difference([look.run for look in run_looks])
    if difference is not None:
        lines.append(f"Not ranked: the runs asked {difference}.")
    figure.suptitle("\n".join(wrap(line, int(TITLE_CHARACTERS * figure.get_figwidth())) for line in lines))


def wrap(text: str, width: int) -> str:
    """Break `text` into lines of at most `width` characters, at blanks and hyphens first."""
    return "\n".join(textwrap.wrap(text, width)) or text


def describe_n(counts: Sequence[int]) -> str:
    """Describe the counts as `n = 6,765 questions a run`, or as the range where the runs differ."""
    low, high = min(counts), max(counts)
    if len(counts) == 1:
        return f"n = {high:,} questions"
    return f"n = {high:,} questions a run" if low == high else f"n = {low:,} to {high:,} questions a run"


def error_bars(values: Sequence[float], intervals: Sequence[Interval | None]) -> list[list[float]]:
    """Compute the distances from each value down and up to the ends of its interval, percent; 0 where it has none.

    `values` are percent, `intervals` fractions of 1.
    """
    pairs = list(zip(values, intervals, strict=True))
    return [
        [0.0 if interval is None else max(0.0, value - 100 * interval[0]) for value, interval in pairs],
        [0.0 if interval is None else max(0.0, 100 * interval[1] - value) for value, interval in pairs],
    ]


def draw_accuracies(
    axes: Any, look: RunStyle, places: Sequence[float], groups: Sequence[Scores | ScoreQuartile], **settings: Any
) -> Any:
    """Draw points with Wilson's intervals at `places`, percent, and return what is drawn; every group has scored
    questions.
    """
    heights = [100 * (group.accuracy or 0.0) for group in groups]
    bars = error_bars(heights, [group.accuracy_interval for group in groups])
    style = {"markersize": 5, "capsize": 2, "elinewidth": 0.9, "linewidth": 1.5, "linestyle": look.line}
    return axes.errorbar(places, heights, yerr=bars, color=look.color, marker=look.marker, **(style | settings))


def split_panels(figure: Any, count: int, columns: int, *, same_axes: bool = False) -> Any:
    """Split the figure into `count` panels, `columns` side by side; `same_axes` gives them the same axes."""
    grid = figure.subplots(-(-count // columns), columns, sharex=same_axes, sharey=same_axes, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.set_visible(False)
    return grid[:count]


def chance_levels(runs: Sequence[ExamRun], groups: Callable[[ExamRun], Mapping[Any, Scores]]) -> dict[Any, float]:
    """Map a group to its level in percent; runs on the same questions share it, and the first one's is taken."""
    levels: dict[Any, float] = {}
    for run in runs:
        for name, group in groups(run).items():
            if group.chance_accuracy is not None:
                levels.setdefault(name, 100 * group.chance_accuracy)
    return levels


def legend_below(figure: Any, entries: Sequence[tuple[Any, str]]) -> None:
    """Draw a legend below the picture, as many columns as its labels leave room for; `entries` are (artist, label)."""
    labels = [wrap(label, 64) for _, label in entries]
    longest = max(len(line) for label in labels for line in label.split("\n"))
    columns = max(1, min(len(entries), int(118 // (longest + 9)), 4))
    figure.legend(
        [artist for artist, _ in entries],
        labels,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=3,
    )


def sample(look: RunStyle) -> Any:
    """Build the run's line and marker for a legend."""
    return _sample(color=look.color, marker=look.marker, linestyle=look.line, markersize=6)


def chance_sample() -> Any:
    """Build the chance level's line for a legend."""
    return _sample(**CHANCE)


def _sample(**look: Any) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], **look)


def legend_height(entries: int, longest: int) -> float:
    """Compute the inches to leave for a legend of `entries` labels, the longest of `longest` characters."""
    lines = -(-min(longest, 200) // 64)
    columns = max(1, min(entries, int(118 // (min(longest, 64) + 9)), 4))
    return 0.15 + 0.2 * lines * -(-entries // columns)
