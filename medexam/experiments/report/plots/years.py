"""The picture of accuracy over exam years, by model and strategy: one line a run, one panel a model.

Few runs share one panel. As figures 12 to 14 of Correa-Guillén et al. (2025).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from medexam.distributions import WILSON
from medexam.experiments.report.plots.style import (
    CHANCE,
    WIDTH,
    Plot,
    RunStyle,
    by_model,
    chance_levels,
    chance_sample,
    describe_n,
    draw_accuracies,
    legend_below,
    legend_height,
    sample,
    split_panels,
    wrap,
    write_title,
)
from medexam.experiments.store.stored_run import ExamRun
from medexam.metrics.results import Scores

TOGETHER = 4
"""The most runs that share one panel whatever their models are."""
CROWDED = 6
"""A model with more runs than this has a panel for each language, or else for each way of answering."""
COLUMNS = 2
PANEL_HEIGHT = 3.4
"""Inches."""
SPREAD = 0.5
"""Width that the runs share around a year, where 1 is a year."""
LEAST_SPAN = 12.0
"""Percentage points that the axis shows at least, so that noise does not look like a trend."""


def years_plot(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan the plot of these runs; None where none has scored a question."""
    scored = [look for look in run_looks if look.run.metrics.n]
    if not scored:
        return None
    panels = _panels(scored)
    labels = _labels(panels)
    rows = -(-len(panels) // COLUMNS)
    height = rows * PANEL_HEIGHT + 0.4 + legend_height(len(labels) + 1, max(map(len, labels)))
    caption = (
        f"Accuracy by exam year, {describe_n([look.run.metrics.n for look in scored])}; bars are 95 % intervals "
        f"({WILSON}) of a year's questions. The axis need not begin at 0."
    )
    return Plot("accuracy_by_year", caption, (WIDTH, height), partial(_draw, scored=scored, panels=panels))


def _labels(panels: Mapping[str, Sequence[RunStyle]]) -> dict[str, RunStyle]:
    """Build the legend: each strategy or run with its n, and one look that stands for it."""
    looks_by_name: dict[str, list[RunStyle]] = {}
    for group in panels.values():
        for look in group:
            looks_by_name.setdefault(look.name, []).append(look)
    labels = {}
    for name, members in looks_by_name.items():
        low, high = min(look.run.metrics.n for look in members), max(look.run.metrics.n for look in members)
        labels[f"{name} (n = {low:,})" if low == high else f"{name} (n = {low:,} to {high:,})"] = members[0]
    return labels


def _by_year(run: ExamRun) -> Mapping[int, Scores]:
    return {year: group for year, group in run.metrics.by_year.items() if group.n}


def _panels(run_looks: Sequence[RunStyle]) -> dict[str, list[RunStyle]]:
    """Group the runs of each panel under its heading; a single panel has none."""
    groups = by_model(run_looks)
    if len(groups) == 1 or len(run_looks) <= TOGETHER:
        groups = {None: list(run_looks)}
    panels: dict[str, list[RunStyle]] = {}
    for model, group in groups.items():
        heading = model or ("no model asked" if len(groups) > 1 else "")
        for part, members in _parts(group).items():
            panels[", ".join(filter(None, (heading, part)))] = members
    return panels


def _parts(group: Sequence[RunStyle]) -> dict[str, list[RunStyle]]:
    """Split the runs of one model by language or by way of answering, where they are too many for one panel."""
    if len(group) > CROWDED:
        for part_of in (attrgetter("language"), _way):
            parts: dict[str, list[RunStyle]] = {}
            for look in group:
                parts.setdefault(part_of(look), []).append(look)
            if len(parts) > 1:
                return parts
    return {"": list(group)}


def _way(look: RunStyle) -> str:
    """Describe in the words of a panel's heading how the program comes to its answer."""
    kind = look.run.record.cell.program.kind
    return {"likelihood": "log-probabilities", "retrieve_then_answer": "with passages"}.get(kind, "replies")


def _draw(figure: Any, scored: Sequence[RunStyle], panels: Mapping[str, Sequence[RunStyle]]) -> None:
    columns = min(COLUMNS, len(panels))
    grid = split_panels(figure, len(panels), columns, same_axes=True)
    levels = chance_levels([look.run for look in scored], _by_year)
    years = sorted(levels)
    for axes, (heading, group) in zip(grid, panels.items(), strict=True):
        for position, look in enumerate(group):
            shift = SPREAD * ((position + 0.5) / len(group) - 0.5)
            group_by_year = _by_year(look.run)
            draw_accuracies(axes, look, [year + shift for year in group_by_year], list(group_by_year.values()))
        for year in years:
            axes.hlines(levels[year], year - 0.38, year + 0.38, zorder=1, **CHANCE)
        axes.set_title(wrap(heading, 60), fontsize="medium", y=1.0)
        axes.set_xticks(years, [str(year) for year in years])
        axes.xaxis.set_tick_params(labelbottom=True)
        axes.grid(axis="y", alpha=0.3)
    for axes in grid[::columns]:
        axes.set_ylabel("accuracy, %")
    low, high = grid[0].get_ylim()
    middle, half = (low + high) / 2, max(LEAST_SPAN, high - low) / 2
    # A little below 0, so that a marker at 0 is whole.
    grid[0].set_ylim(max(-0.03 * 2 * half, middle - half), middle + half)
    write_title(figure, "Accuracy by exam year", scored)
    legend_below(
        figure, [(sample(look), label) for label, look in _labels(panels).items()] + [(chance_sample(), "chance")]
    )
