"""What a uniform choice among the options is expected to score: the level that a program has to beat.

It is an expectation, found by arithmetic and not by drawing; the `random` control is one draw of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from medexam.metrics.counting import Cell, Tally


@dataclass(frozen=True)
class Chance:
    """Expected scores of a uniform choice on the scored questions; None where none is scored."""

    accuracy: float | None
    exam_score: float | None
    points: float | None
    """Per exam, averaged over the exams with a scored question."""


def chance_level(cells: Mapping[Cell, Tally]) -> Chance:
    """The chance level of the scored questions of `cells`.

    A question with k options adds 1/k to the expected right answers and (k-1)/k to the wrong ones.
    """
    n = sum(tally.n for tally in cells.values())
    if n == 0:
        return Chance(None, None, None)
    right = sum(tally.n / cell.option_count for cell, tally in cells.items())
    points = 3 * right - (n - right)
    exams = {cell.exam for cell, tally in cells.items() if tally.n}
    return Chance(accuracy=right / n, exam_score=points / 3 / n, points=points / len(exams))
