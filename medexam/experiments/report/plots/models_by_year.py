"""The picture of accuracy over exam years on one axis: a colour for each model, a marker for each strategy.

As figures 12 to 14 of Correa-Guillén et al. (2025). Runs of several languages have a line style for each language.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from medexam.experiments.report.plots.style import (
    CHANCE,
    GREY,
    LINES,
    MARKERS,
    PALETTE,
    WIDTH,
    Plot,
    RunStyle,
    chance_levels,
    chance_sample,
    describe_n,
    draw_accuracies,
    legend_below,
    legend_height,
    write_title,
)

HEIGHT = 5.0
"""Inches, without the legend."""


def models_by_year_plot(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan the plot of these runs; None where none has scored a question of an exam with a year."""
    scored = [look for look in run_looks if any(group.n for group in look.run.metrics.by_year.values())]
    if not scored:
        return None
    styled = [_style(look, scored) for look in scored]
    names = [*_models(scored), *_programs(scored), *_languages(scored), "chance"]
    caption = (
        f"Accuracy by exam year, {describe_n([look.run.metrics.n for look in scored])}: a colour for each model, a "
        "marker for each strategy. The axis need not begin at 0."
    )
    size = (WIDTH, HEIGHT + legend_height(len(names), max(map(len, names))))
    return Plot("accuracy_by_year", caption, size, partial(_draw, styled=styled))


def _models(run_looks: Sequence[RunStyle]) -> list[str]:
    return list(dict.fromkeys(_model(look) for look in run_looks))


def _programs(run_looks: Sequence[RunStyle]) -> list[str]:
    return list(dict.fromkeys(look.run.program for look in run_looks))


def _languages(run_looks: Sequence[RunStyle]) -> list[str]:
    """List the languages if the runs have several."""
    languages = list(dict.fromkeys(look.language for look in run_looks))
    return languages if len(languages) > 1 else []


def _model(look: RunStyle) -> str:
    return look.run.model or "no model asked"


def _style(look: RunStyle, run_looks: Sequence[RunStyle]) -> RunStyle:
    languages = _languages(run_looks)
    return replace(
        look,
        color=PALETTE[_models(run_looks).index(_model(look)) % len(PALETTE)],
        marker=MARKERS[_programs(run_looks).index(look.run.program) % len(MARKERS)],
        line=LINES[languages.index(look.language) % len(LINES)] if languages else LINES[0],
    )


def _draw(figure: Any, styled: Sequence[RunStyle]) -> None:
    from matplotlib.lines import Line2D

    axes = figure.subplots()
    for look in styled:
        groups = {year: group for year, group in look.run.metrics.by_year.items() if group.n}
        draw_accuracies(axes, look, list(groups), list(groups.values()), elinewidth=0.5)
    levels = chance_levels([look.run for look in styled], lambda run: run.metrics.by_year)
    for year, level in levels.items():
        axes.hlines(level, year - 0.4, year + 0.4, zorder=1, **CHANCE)
    axes.set_xticks(sorted(levels), [str(year) for year in sorted(levels)])
    axes.set_ylabel("accuracy, %")
    axes.grid(axis="y", alpha=0.3)
    write_title(figure, "Accuracy by exam year", styled)
    samples = {_model(look): Line2D([], [], color=look.color, linewidth=3) for look in styled}
    samples |= {
        look.run.program: Line2D([], [], color=GREY, marker=look.marker, linestyle="", markersize=7) for look in styled
    }
    if languages := _languages(styled):
        samples |= {
            name: Line2D([], [], color=GREY, linestyle=LINES[place % len(LINES)])
            for place, name in enumerate(languages)
        }
    legend_below(figure, [*((artist, name) for name, artist in samples.items()), (chance_sample(), "chance")])
