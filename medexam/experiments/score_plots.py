"""Plots of option scores: the reliability diagram, and the exam score against the threshold of leaving blank.

They draw on axes that they are given, all runs in one picture; a run without option scores is left out.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from medexam.experiments.summary import StoredRun
from medexam.metrics import OptionScoreMetrics

MARKER_AREA = 600
"""Area of the marker of a bin that holds every question, points^2."""
SMALLEST_MARKER = 12


def has_option_scores(runs: Sequence[StoredRun]) -> bool:
    """Whether there is anything to draw."""
    return any(run.metrics.option_scores is not None for run in runs)


def draw_reliability(axes: Any, runs: Sequence[StoredRun]) -> None:
    """Accuracy against mean confidence of each bin that holds questions; a perfectly calibrated run is the diagonal.

    The marker's area is the bin's share of the questions.
    """
    axes.plot([0, 100], [0, 100], color="0.4", linestyle="dotted", label="perfect calibration")
    for color, run, scores in _scored(runs):
        bins = [part for part in scores.reliability if part.n]
        across = [100 * (part.mean_confidence or 0.0) for part in bins]
        heights = [100 * (part.accuracy or 0.0) for part in bins]
        intervals = [part.accuracy_interval or (0.0, 0.0) for part in bins]
        down = [max(0.0, height - 100 * low) for height, (low, _) in zip(heights, intervals, strict=True)]
        up = [max(0.0, 100 * high - height) for height, (_, high) in zip(heights, intervals, strict=True)]
        axes.errorbar(across, heights, yerr=[down, up], color=color, capsize=3, linewidth=1)
        areas = [max(SMALLEST_MARKER, MARKER_AREA * part.n / scores.n) for part in bins]
        axes.scatter(across, heights, s=areas, color=color, alpha=0.5)
        error = 100 * scores.expected_calibration_error
        axes.plot([], [], color=color, marker="o", label=f"{run.title} (n = {scores.n}, ECE {error:.1f} %)")
    axes.set_xlabel("confidence, % (marker area: share of the questions)")
    axes.set_ylabel("accuracy, % (95 % interval)")
    axes.set_xlim(-3, 103)
    axes.set_ylim(-3, 103)
    axes.set_aspect("equal")
    axes.grid(alpha=0.3)
    axes.figure.legend(loc="outside lower center", fontsize="small", frameon=False)


def draw_exam_score_by_threshold(axes: Any, runs: Sequence[StoredRun]) -> None:
    """The exam score when questions of less confidence are left blank; a ring marks the best threshold of each run."""
    for color, run, scores in _scored(runs):
        thresholds = [100 * point.threshold for point in scores.abstention]
        heights = [100 * point.exam_score for point in scores.abstention]
        axes.plot(thresholds, heights, marker=".", color=color, label=f"{run.title} (n = {scores.n})")
        best = [point.threshold for point in scores.abstention].index(scores.best_threshold)
        axes.plot(thresholds[best], heights[best], marker="o", markersize=11, fillstyle="none", color=color)
    axes.plot(
        [],
        [],
        color="0.4",
        marker="o",
        markersize=11,
        fillstyle="none",
        linestyle="",
        label="best threshold (chosen on these questions: optimistic)",
    )
    axes.axhline(0, color="0.4", linestyle="dotted", label="every question blank")
    axes.set_xlabel("questions left blank below this confidence, %")
    axes.set_ylabel("exam score, %")
    axes.grid(alpha=0.3)
    axes.figure.legend(loc="outside lower center", fontsize="small", frameon=False)


def _scored(runs: Sequence[StoredRun]) -> Iterator[tuple[str, StoredRun, OptionScoreMetrics]]:
    """Each run that has option scores, in the colour that it has in the other plots of `runs`."""
    for position, run in enumerate(runs):
        if run.metrics.option_scores is not None:
            yield f"C{position}", run, run.metrics.option_scores
