"""The picture of relevance: accuracy by quartile of the best passage's score.

A run without passages is left out. Quartiles and not scores stand on the axis, because two retrievers' scores have no
common unit.
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
    chance_sample,
    describe_n,
    draw_accuracies,
    legend_below,
    legend_height,
    sample,
    write_title,
)
from medexam.predictions.evidence.passages import QUARTILES, RetrievalMetrics
from medexam.tables import coefficient

SPREAD = 0.5
"""Width that the runs share around a quartile's place on the axis, where 1 is the distance between quartiles."""


def relevance_plot(run_looks: Sequence[RunStyle]) -> Plot | None:
    """Plan the plot of the runs that have passages; None where none has."""
    pairs = _retrieval_pairs(run_looks)
    if not pairs:
        return None
    caption = (
        f"Accuracy by quartile of the best passage's score, {describe_n([part.n for _, part in pairs])} with passages; "
        f"bars are 95 % intervals ({WILSON}). r correlates that score with being right; chance is the first run's."
    )
    labels = [_label(look, part) for look, part in pairs]
    size = (WIDTH, 4.2 + legend_height(len(labels) + 1, max(map(len, labels))))
    return Plot("relevance", caption, size, partial(_draw, pairs=pairs))


def _retrieval_pairs(run_looks: Sequence[RunStyle]) -> list[tuple[RunStyle, RetrievalMetrics]]:
    return [
        (look, look.run.metrics.retrieval)
        for look in run_looks
        if look.run.metrics.retrieval is not None and look.run.metrics.retrieval.n
    ]


def _label(look: RunStyle, retrieval: RetrievalMetrics) -> str:
    correlated = retrieval.score_correctness
    r = "" if correlated is None else f", r = {coefficient(correlated.r)}"
    return f"{look.name} (n = {retrieval.n:,}{r})"


def _draw(figure: Any, pairs: Sequence[tuple[RunStyle, RetrievalMetrics]]) -> None:
    axes = figure.add_subplot()
    draw_relevance(axes, [look for look, _ in pairs])
    entries = [(sample(look), _label(look, part)) for look, part in pairs]
    legend_below(figure, [*entries, (chance_sample(), "chance")])
    write_title(figure, "Accuracy by relevance of the passages", [look for look, _ in pairs])


def draw_relevance(axes: Any, run_looks: Sequence[RunStyle]) -> None:
    """Draw the accuracy of each quartile that holds questions, with its interval; runs without passages are left out.

    The chance level is the first run's over all its questions.
    """
    pairs = _retrieval_pairs(run_looks)
    for row, (look, retrieval) in enumerate(pairs):
        shift = SPREAD * ((row + 0.5) / len(pairs) - 0.5)
        groups = [(place + shift, part) for place, part in enumerate(retrieval.quartiles) if part.n]
        places, parts = [place for place, _ in groups], [part for _, part in groups]
        draw_accuracies(axes, look, places, parts, linewidth=1.2, markersize=6, label=_label(look, retrieval))
    chance = next((look.run.metrics.chance_accuracy for look, _ in pairs), None)
    if chance is not None:
        axes.axhline(100 * chance, **CHANCE)
    axes.set_xticks(range(4), QUARTILES)
    axes.set_xlabel("quartile of the best passage's score")
    axes.set_ylabel("accuracy, %")
    axes.grid(axis="y", alpha=0.3)
