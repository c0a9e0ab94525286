"""The plot of relevance: accuracy by quartile of the best passage's score.

It draws on axes that it is given, all runs in one picture; a run without passages is left out. Quartiles and not
scores stand on the axis, because two retrievers' scores have no common unit.
"""

from collections.abc import Sequence
from typing import Any

from medexam.experiments.retrieval_tables import QUARTILES, coefficient
from medexam.experiments.summary import StoredRun

SPREAD = 0.5
"""Width that the runs share around a quartile's place on the axis, where 1 is the distance between quartiles."""


def has_passages(runs: Sequence[StoredRun]) -> bool:
    """Whether there is anything to draw."""
    return any(run.metrics.retrieval is not None and run.metrics.retrieval.n for run in runs)


def draw_relevance(axes: Any, runs: Sequence[StoredRun]) -> None:
    """Accuracy of each quartile that holds questions, with its interval; each run in its colour of the other plots.

    The chance level is the first run's over all its questions.
    """
    drawn = [
        (position, run, run.metrics.retrieval)
        for position, run in enumerate(runs)
        if run.metrics.retrieval is not None and run.metrics.retrieval.n
    ]
    for row, (position, run, retrieval) in enumerate(drawn):
        shift = SPREAD * ((row + 0.5) / len(drawn) - 0.5)
        groups = [(place + shift, part) for place, part in enumerate(retrieval.quartiles) if part.n]
        heights = [100 * (part.accuracy or 0.0) for _, part in groups]
        intervals = [part.accuracy_interval or (0.0, 0.0) for _, part in groups]
        down = [max(0.0, height - 100 * low) for height, (low, _) in zip(heights, intervals, strict=True)]
        up = [max(0.0, 100 * high - height) for height, (_, high) in zip(heights, intervals, strict=True)]
        found = retrieval.score_correctness
        r = "" if found is None else f", r = {coefficient(found.r)}"
        axes.errorbar(
            [place for place, _ in groups],
            heights,
            yerr=[down, up],
            color=f"C{position}",
            marker="o",
            linewidth=1,
            capsize=3,
            label=f"{run.title} (n = {retrieval.n}{r})",
        )
    chance = next((run.metrics.chance_accuracy for _, run, _ in drawn), None)
    if chance is not None:
        axes.axhline(100 * chance, color="0.4", linestyle="dotted", label="chance")
    axes.set_xticks(range(4), QUARTILES)
    axes.set_xlabel("quartile of the best passage's score")
    axes.set_ylabel("accuracy, % (95 % interval)")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    axes.figure.legend(loc="outside lower center", fontsize="small", frameon=False)
