"""Pictures of option scores: reliability diagrams, and the exam score against the threshold of leaving blank.

A run without option scores is left out.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from medexam.distributions import WILSON
from medexam.experiments.report.plots.style import (
    CHANCE,
    WIDTH,
    Plot,
    RunStyle,
    describe_n,
    error_bars,
    legend_below,
    legend_height,
    sample,
    split_panels,
    wrap,
    write_title,
)
from medexam.predictions.evidence.option_statistics import OptionScoreMetrics

PANEL = 3.3
"""Inches of a reliability diagram's side, with its heading."""
MARKER_AREA = 500
"""Area of the marker of a bin that holds every question, points^2."""
SMALLEST_MARKER = 14

Scored = Sequence[tuple[RunStyle, OptionScoreMetrics]]


def reliability_plot(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan one diagram a run; None where no run has option scores."""
    scored = _scored(run_looks)
    if not scored:
        return None
    caption = (
        f"Accuracy against confidence in ten bins, {_describe(scored)}; bars are 95 % intervals ({WILSON}), the area "
        "of a marker shows the bin's share of the questions. A calibrated run lies on the diagonal; ECE is the "
        "expected calibration error."
    )
    columns = _columns(scored)
    size = (max(6.0, WIDTH * columns / 3), 0.5 + (PANEL + 0.3) * -(-len(scored) // columns))
    return Plot("reliability", caption, size, partial(_draw_reliability, scored=scored))


def thresholds_plot(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan the plot of the exam score at each threshold of leaving blank; None where no run has option scores."""
    scored = _scored(run_looks)
    if not scored:
        return None
    caption = (
        f"Exam score when questions of less confidence are left blank, {_describe(scored)}, without intervals. A ring "
        "marks a run's best threshold; chosen on these same questions, it is optimistic."
    )
    labels = [_label(look, scores) for look, scores in scored]
    size = (WIDTH, 4.6 + legend_height(len(labels) + 2, max(60, *map(len, labels))))
    return Plot("exam_score_by_threshold", caption, size, partial(_draw_thresholds, scored=scored))


def _scored(run_looks: Sequence[RunStyle]) -> list[tuple[RunStyle, OptionScoreMetrics]]:
    return [(look, look.run.metrics.option_scores) for look in run_looks if look.run.metrics.option_scores is not None]


def _describe(scored: Scored) -> str:
    return describe_n([scores.n for _, scores in scored])


def _columns(scored: Scored) -> int:
    """Count the diagrams side by side: two of four, else three at most."""
    return 2 if len(scored) == 4 else min(3, len(scored))


def _label(look: RunStyle, scores: OptionScoreMetrics) -> str:
    return f"{look.name} (n = {scores.n:,})"


def _draw_reliability(figure: Any, scored: Scored) -> None:
    columns = _columns(scored)
    grid = split_panels(figure, len(scored), columns, same_axes=True)
    for axes, (look, scores) in zip(grid, scored, strict=True):
        bins = [part for part in scores.reliability if part.n]
        confidences = [100 * (part.mean_confidence or 0.0) for part in bins]
        heights = [100 * (part.accuracy or 0.0) for part in bins]
        bars = error_bars(heights, [part.accuracy_interval for part in bins])
        axes.plot([0, 100], [0, 100], **CHANCE)
        axes.errorbar(confidences, heights, yerr=bars, color=look.color, capsize=2, linewidth=1.2, elinewidth=0.9)
        areas = [max(SMALLEST_MARKER, MARKER_AREA * part.n / scores.n) for part in bins]
        axes.scatter(confidences, heights, s=areas, color=look.color, alpha=0.6, zorder=3)
        error = 100 * scores.expected_calibration_error
        axes.set_title(f"{wrap(look.name, 32)}\nn = {scores.n:,}, ECE {error:.1f} %", fontsize="small")
        axes.set_xlim(-4, 104)
        axes.set_ylim(-4, 104)
        axes.set_aspect("equal")
        axes.set_xlabel("confidence, %")
        axes.xaxis.set_tick_params(labelbottom=True)
        axes.grid(alpha=0.3)
    for axes in grid[::columns]:
        axes.set_ylabel("accuracy, %")
    write_title(figure, "Reliability", [look for look, _ in scored])


def _draw_thresholds(figure: Any, scored: Scored) -> None:
    axes = figure.add_subplot()
    entries = []
    for look, scores in scored:
        thresholds = [100 * point.threshold for point in scores.abstention]
        heights = [100 * point.exam_score for point in scores.abstention]
        style = {"color": look.color, "marker": look.marker, "linestyle": look.line}
        axes.plot(thresholds, heights, markersize=4, **style)
        best = [point.threshold for point in scores.abstention].index(scores.best_threshold)
        axes.plot(thresholds[best], heights[best], color=look.color, **_ring())
        entries.append((sample(look), _label(look, scores)))
    (ring,) = axes.plot([], [], color="0.4", linestyle="", **_ring())
    blank = axes.axhline(0, **CHANCE)
    axes.set_xlabel("questions left blank below this confidence, %")
    axes.set_ylabel("exam score, %")
    axes.grid(alpha=0.3)
    write_title(figure, "Exam score by threshold", [look for look, _ in scored])
    legend_below(
        figure, [*entries, (ring, "best threshold (optimistic: chosen here)"), (blank, "every question blank")]
    )


def _ring() -> dict[str, Any]:
    return {"marker": "o", "markersize": 12, "fillstyle": "none", "markeredgewidth": 1.5}
