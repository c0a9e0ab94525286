"""The four plots of runs. Each is planned of the runs that have its data, and is None where none has.

Years are as in figures 12 to 14 of Correa-Guillén et al. (2025).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

from medexam.distributions import WILSON
from medexam.experiments.compare.ranking import describe_difference
from medexam.experiments.report.plots.style import (
    BARS,
    CHANCE,
    WIDTH,
    Plot,
    RunStyle,
    describe_n,
    looks,
    plan,
    span,
    split_panels,
    with_bars,
    wrap,
)
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.results import Measure
from medexam.measures.shown import describe_resampling
from medexam.tables import decimal, percent, with_interval

TOGETHER = 4
"""The most runs whose years share a panel."""
SPREAD = 0.5
"""Width that the runs share around a place on the axis, where 1 is the distance between places."""
LEAST_SPAN = 12.0
"""Percentage points that the axis of years shows at least, so that noise does not look like a trend."""
OTHERS: dict[str, Any] = {"color": "#cccccc", "linewidth": 1.2, "zorder": 1}
"""How a run is drawn behind another."""


def strategies(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan accuracy and exam score of each run, side by side."""
    scored = {look: look.run.metrics.measures for look in run_looks if look.n}
    names = [name for name in ("accuracy", "exam_score") if any(name in measures for measures in scored.values())]
    if not names:
        return None
    if describe_difference([look.run for look in scored]) is None:
        scored = dict(sorted(scored.items(), key=lambda pair: -(pair[0].run.score or 0)))

    def draw(figure: Any) -> None:
        grid = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for axes, name in zip(grid, names, strict=True):
            for place, (look, measures) in enumerate(scored.items()):
                measure = measures.get(name)
                if measure is None or measure.value is None:
                    continue
                values, bars = with_bars([(measure.value, measure.interval)])
                axes.errorbar(values, [place], xerr=bars, **look.line, markersize=7, capsize=3)
                words = with_interval(percent(measure.value), measure.interval).replace(" [", "\n[")
                axes.text(1.02, place, words, transform=axes.get_yaxis_transform(), va="center", fontsize="small")
                if measure.chance is not None:
                    axes.vlines(100 * measure.chance, place - 0.36, place + 0.36, zorder=1, **CHANCE)
            axes.set_xlabel(f"{name.replace('_', ' ')}, %")
            axes.grid(axis="x", alpha=0.3)
            axes.tick_params(axis="y", length=0)
            axes.margins(x=0.08)
        labels = [f"{wrap(look.name, 34)}\nn = {look.n:,}" for look in scored]
        grid[0].set_yticks(range(len(scored)), labels)
        grid[0].set_ylim(len(scored) - 0.4, -0.6)

    rules = f"accuracy: {WILSON}"
    if "exam_score" in names:
        ways = [measures["exam_score"].resampled for measures in scored.values() if "exam_score" in measures]
        clusters = next(iter(scored)).run.benchmark.clusters
        rules += f"; exam score: {describe_resampling(ways, 'bootstrap', clusters)}"
    caption = (
        f"{' and '.join(names).capitalize().replace('_', ' ')} of each run, {describe_n([look.n for look in scored])}; "
        f"bars are 95 % intervals ({rules}). Dotted marks: what choosing at random would score on the same questions."
    )
    size = (WIDTH, 1.4 + 0.44 * len(scored))
    return plan("strategies", "Strategies side by side", caption, size, scored, draw, [(CHANCE, "chance")])


def years(run_looks: Sequence[RunStyle], *, together: bool = False) -> Plot | None:
    """Plan accuracy over exam years: a panel for each run before the others in grey, or one for all `together`."""
    scored = _by_facet(run_looks, "year")
    if not scored:
        return None
    is_alone = len(scored) > TOGETHER and not together
    panels = [[look] for look in scored] if is_alone else [[*scored]]
    columns = min(4, len(panels))
    chance = {int(year): measure.chance for groups in scored.values() for year, measure in groups.items()}
    levels = {year: 100 * level for year, level in sorted(chance.items()) if level is not None}
    others: list[tuple[float, float]] = []
    for groups in scored.values():
        others += [(int(year), 100 * (measure.value or 0.0)) for year, measure in groups.items()]
        # What is not a number breaks the line.
        others.append((math.nan, math.nan))

    def draw(figure: Any) -> None:
        grid = split_panels(figure, len(panels), columns)
        for axes, panel in zip(grid, panels, strict=True):
            if is_alone:
                axes.plot(*zip(*others, strict=True), **OTHERS)
                axes.set_title(f"{wrap(panel[0].name, 28)}\nn = {panel[0].n:,}", fontsize="small")
            for place, look in enumerate(panel):
                shift = SPREAD * ((place + 0.5) / len(panel) - 0.5)
                values, bars = with_bars([(each.value or 0.0, each.interval) for each in scored[look].values()])
                axes.errorbar([int(year) + shift for year in scored[look]], values, yerr=bars, **look.line, **BARS)
            ends = [[year + end for year in levels] for end in (-0.38, 0.38)]
            axes.hlines([*levels.values()], *ends, zorder=1, **CHANCE)
            axes.set_xticks(sorted(chance), map(str, sorted(chance)))
            axes.grid(axis="y", alpha=0.3)
        for axes in grid[::columns]:
            axes.set_ylabel("accuracy, %")
        low, high = grid[0].get_ylim()
        half = max(LEAST_SPAN, high - low) / 2
        # A little below 0, so that a marker at 0 is whole.
        grid[0].set_ylim(max(-0.06 * half, (low + high) / 2 - half), (low + high) / 2 + half)

    caption = (
        f"Accuracy by exam year, {describe_n([look.n for look in scored])}; bars are 95 % intervals ({WILSON}) of a "
        "year's questions. The axis need not begin at 0."
    )
    lines = [(look.line, f"{look.name} (n = {look.n:,})") for look in scored]
    legend = [*([(OTHERS, "other runs")] if is_alone else lines), (CHANCE, "chance")]
    title, size = "Accuracy by exam year", (WIDTH, 0.7 + (2.3 if is_alone else 3.6) * -(-len(panels) // columns))
    return plan("accuracy_by_year", title, caption, size, scored, draw, legend)


def disciplines(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan a heat map of runs and disciplines, its numbers written into its cells."""
    scored = _by_facet(run_looks, "discipline")
    if not scored:
        return None
    by_name: dict[str, list[Measure]] = {}
    for groups in scored.values():
        for name, measure in groups.items():
            by_name.setdefault(name, []).append(measure)
    names = sorted(by_name)
    chance = {name: Measure(value=measures[0].chance, n=0) for name, measures in by_name.items()}

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        cells = [[groups.get(name, Measure()) for name in names] for groups in (*scored.values(), chance)]
        values = [[math.nan if cell.value is None else cell.value for cell in row] for row in cells]
        image = axes.imshow(values, cmap="cividis", aspect="auto")
        for row, column in product(range(len(cells)), range(len(names))):
            cell = cells[row][column]
            red, green, blue, _ = image.cmap(image.norm(cell.value or 0.0))
            is_bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
            color = "black" if cell.value is None or is_bright else "white"
            text = with_interval(percent(cell.value), cell.interval, lambda end: decimal(100 * end, 0))
            style = {"ha": "center", "va": "center", "fontsize": "small", "color": color}
            axes.text(column, row, text.replace(" [", "\n["), **style)
        counts = {name: [measure.n for measure in by_name[name]] for name in names}
        heads = [f"{wrap(name, 80 // len(names))}\nn = {span(counts[name])}" for name in names]
        axes.set_xticks(range(len(names)), heads)
        axes.set_yticks(range(len(cells)), [*(wrap(look.name, 30) for look in scored), "chance"])
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.vlines([at - 0.5 for at in range(1, len(names))], -0.5, len(scored) + 0.5, "white", linewidth=1.5)
        axes.hlines([at - 0.5 for at in range(1, len(cells))], -0.5, len(names) - 0.5, "white", linewidth=1.5)

    group_name = next(iter(scored)).run.benchmark.facets.get("discipline", "discipline").lower()
    caption = (
        f"Accuracy by {group_name} in percent, {describe_n([look.n for look in scored])}; in brackets 95 % "
        f"intervals ({WILSON}). The last row is what choosing at random would score."
    )
    size = (WIDTH, 1.5 + 0.55 * (len(scored) + 1))
    return plan("accuracy_by_discipline", f"Accuracy by {group_name}, %", caption, size, scored, draw)


def reliability(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan accuracy against confidence, a panel for each run with option scores."""
    evidence = {look: look.run.metrics.evidence.get("option_scores") for look in run_looks}
    scored = {look: figures for look, figures in evidence.items() if figures is not None}
    if not scored:
        return None
    columns = 2 if len(scored) == 4 else min(3, len(scored))

    def draw(figure: Any) -> None:
        grid = split_panels(figure, len(scored), columns)
        for axes, (look, scores) in zip(grid, scored.items(), strict=True):
            bins = [part for part in scores["reliability"] if part["n"]]
            confidences = [100 * part["mean_confidence"] for part in bins]
            values, bars = with_bars([(part["accuracy"], part["accuracy_interval"]) for part in bins])
            axes.plot([0, 100], [0, 100], **CHANCE)
            axes.errorbar(confidences, values, yerr=bars, **{**look.line, **BARS, "marker": ""})
            areas = [max(14, 500 * part["n"] / scores["n"]) for part in bins]
            axes.scatter(confidences, values, areas, look.line["color"], alpha=0.6)
            error = percent(scores["expected_calibration_error"])
            axes.set_title(f"{wrap(look.name, 32)}\nn = {scores['n']:,}, ECE {error} %", fontsize="small")
            axes.set(xlim=(-4, 104), ylim=(-4, 104), aspect="equal", xlabel="confidence, %")
            axes.grid(alpha=0.3)
        for axes in grid[::columns]:
            axes.set_ylabel("accuracy, %")

    caption = (
        f"Accuracy against confidence in ten bins, {describe_n([scores['n'] for scores in scored.values()])}; bars "
        f"are 95 % intervals ({WILSON}), the area of a marker shows the bin's share of the questions. A calibrated run "
        "lies on the diagonal; ECE is the expected calibration error."
    )
    size = (max(6.0, WIDTH * columns / 3), 0.5 + 3.6 * -(-len(scored) // columns))
    return plan("reliability", "Reliability", caption, size, scored, draw)


PLOTS: Mapping[str, Callable[..., Plot | None]] = MappingProxyType(
    {plot.__name__: plot for plot in (strategies, years, disciplines, reliability)}
)
"""By name, in the order of a report."""


def plot_runs(runs: Sequence[StoredRun]) -> list[Plot]:
    """Plan the plots of those runs whose answers are right or wrong, where they have the data."""
    run_looks = looks([run for run in runs if run.benchmark.right_or_wrong])
    return [plot for draw in PLOTS.values() if run_looks and (plot := draw(run_looks)) is not None]


def _by_facet(run_looks: Sequence[RunStyle], facet: str) -> dict[RunStyle, dict[str, Measure]]:
    scored = {
        look: {
            name: scores.measures["accuracy"] for name, scores in look.run.metrics.by.get(facet, {}).items() if scores.n
        }
        for look in run_looks
    }
    return {look: groups for look, groups in scored.items() if groups}
