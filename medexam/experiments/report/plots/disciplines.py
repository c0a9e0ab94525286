"""The picture of accuracy by discipline: a heat map of runs and disciplines, its numbers written into its cells."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from medexam.distributions import WILSON
from medexam.experiments.report.plots.style import WIDTH, Plot, RunStyle, chance_levels, describe_n, wrap, write_title
from medexam.experiments.store.stored_run import ExamRun
from medexam.metrics.results import PublishedScores
from medexam.tables import decimal

COLORS = "cividis"
"""A scale that is read alike with and without red-green blindness, and in grey."""
CELL_HEIGHT = 0.55
"""Inches."""
NAME_WIDTH = 30
"""Characters of a line of a run's name."""
CHANCE_ROW = "chance"


def disciplines_plot(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan the plot of these runs; None where none has scored a question."""
    scored = [look for look in run_looks if look.run.metrics.n]
    if not scored:
        return None
    caption = (
        f"Accuracy by {_group(scored)} in percent, {describe_n([look.run.metrics.n for look in scored])}; in brackets "
        f"95 % intervals ({WILSON}). The last row is what choosing at random would score."
    )
    size = (WIDTH, 1.5 + CELL_HEIGHT * (len(scored) + 1))
    return Plot("accuracy_by_discipline", caption, size, partial(_draw, scored=scored))


def _group(scored: Sequence[RunStyle]) -> str:
    return scored[0].run.benchmark.facets["discipline"].lower()


def _by_discipline(run: ExamRun) -> dict[str, PublishedScores]:
    return {discipline: group for discipline, group in run.metrics.by_discipline.items() if group.n}


def _draw(figure: Any, scored: Sequence[RunStyle]) -> None:
    from matplotlib.colors import Normalize

    axes = figure.add_subplot()
    chance = chance_levels([look.run for look in scored], _by_discipline)
    disciplines = sorted(chance)
    groups_by_run = [_by_discipline(look.run) for look in scored]
    heights = [[_percent(groups.get(discipline)) for discipline in disciplines] for groups in groups_by_run]
    heights.append([chance[discipline] for discipline in disciplines])
    percents = [height for row in heights for height in row if height is not None]
    norm = Normalize(min(percents), max(*percents, min(percents) + 1))
    nan = float("nan")
    image = axes.imshow(
        [[nan if height is None else height for height in row] for row in heights],
        cmap=COLORS,
        norm=norm,
        aspect="auto",
    )
    counts = [{groups[discipline].n for groups in groups_by_run if discipline in groups} for discipline in disciplines]
    same_counts = all(len(sizes) == 1 for sizes in counts)
    for row, groups in enumerate(groups_by_run):
        for column, discipline in enumerate(disciplines):
            if discipline in groups:
                text = _written(groups[discipline], n=not same_counts)
                _write(axes, column, row, text, _ink(image, heights[row][column]))
            else:
                _write(axes, column, row, "-", "black")
    for column, discipline in enumerate(disciplines):
        level = chance[discipline]
        _write(axes, column, len(groups_by_run), decimal(level), _ink(image, level))
    heads = [
        f"{name}\nn = {min(sizes):,}" if same_counts else str(name)
        for name, sizes in zip(disciplines, counts, strict=True)
    ]
    axes.set_xticks(range(len(disciplines)), heads)
    axes.set_yticks(range(len(groups_by_run) + 1), [*(wrap(look.name, NAME_WIDTH) for look in scored), CHANCE_ROW])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.axhline(len(groups_by_run) - 0.5, color="white", linewidth=6)
    for line in range(1, len(disciplines)):
        axes.axvline(line - 0.5, color="white", linewidth=1.5)
    for line in range(1, len(groups_by_run)):
        axes.axhline(line - 0.5, color="white", linewidth=1.5)
    write_title(figure, f"Accuracy by {_group(scored)}, %", scored)


def _percent(group: PublishedScores | None) -> float | None:
    return None if group is None or group.accuracy is None else 100 * group.accuracy


def _written(group: PublishedScores, *, n: bool) -> str:
    """Format accuracy over its interval, and how many questions where the runs differ."""
    low, high = group.accuracy_interval or (0.0, 0.0)
    text = f"{decimal(_percent(group))}\n[{100 * low:.0f}, {100 * high:.0f}]"
    return f"{text} n = {group.n:,}" if n else text


def _write(axes: Any, column: int, row: int, text: str, ink: str) -> None:
    axes.text(column, row, text, ha="center", va="center", fontsize="small", color=ink)


def _ink(image: Any, height: float | None) -> str:
    """Choose black or white, whichever is read on the cell's colour."""
    red, green, blue, _ = image.cmap(image.norm(height or 0.0))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
