"""The curve of an optimization: the score of each trial and the best one so far."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from medexam.experiments.optimize.trials import Trial, metric_title
from medexam.experiments.report.plots.style import GREY, PALETTE, error_bars, wrap

INCHES = (9.5, 4.8)
LABEL_WIDTH = 26
"""Characters of a line of a label."""
LABELS = 6
"""The most improvements that are named; the best one always is."""
LEAST_SPAN = 0.05
"""What the axis shows at least, from its lowest to its highest score."""


def draw_curve(axes: Any, trials: Sequence[Trial], metric: str) -> None:
    """Draw each trial's score, the best so far as a stair, and the names of the trials that set a new best.

    Accuracies have their 95 % interval; the n of the axis is the first trial's.
    """
    from matplotlib.ticker import MaxNLocator

    scale = 1.0 if metric == "log_probability" or ":" in metric else 100.0
    numbers = [trial.number for trial in trials]
    scores = [scale * trial.score for trial in trials]
    if metric == "accuracy":
        bars = error_bars(scores, [trial.accuracy_interval for trial in trials])
        axes.errorbar(numbers, scores, yerr=bars, fmt="none", color=PALETTE[5], alpha=0.5, capsize=3)
    axes.plot(numbers, scores, "o", color=PALETTE[5], markersize=5, label=f"score of a trial ({len(trials)})")
    bests = list(accumulate(scores, max))
    axes.plot(numbers, bests, drawstyle="steps-post", color=PALETTE[0], linewidth=1.8, label="best so far")
    improvements = [place for place, score in enumerate(scores) if not place or score > bests[place - 1]]
    axes.plot(
        [numbers[place] for place in improvements],
        [scores[place] for place in improvements],
        "D",
        color=PALETTE[1],
        label="new best",
    )
    low, high = axes.get_ylim()
    span = max(high - low, scale * LEAST_SPAN)
    axes.set_ylim(low, high + 0.3 * span)
    axes.set_xlim(min(numbers) - 0.8, max(numbers) + 0.8)
    _name(axes, [(numbers[place], scores[place], trials[place].name) for place in improvements][-LABELS:])
    axes.set_xlabel("trial")
    axes.set_ylabel(f"{metric_title(metric)} of n = {trials[0].n}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.grid(axis="y", alpha=0.3)
    axes.figure.legend(loc="outside lower center", ncols=4, frameon=False)


def _name(axes: Any, improvements: Sequence[tuple[int, float, str]]) -> None:
    """Write the names in a row above the curve, a leader line down to each trial."""
    for place, (number, score, name) in enumerate(improvements):
        axes.annotate(
            f"{number}: {wrap(name, LABEL_WIDTH)}",
            (number, score),
            xytext=((place + 0.5) / len(improvements), 0.98),
            textcoords="axes fraction",
            ha="center",
            va="top",
            fontsize="small",
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.8},
        )
