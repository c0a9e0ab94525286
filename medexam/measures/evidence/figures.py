"""What the kinds of evidence share: the form of their figures, and accuracies with their intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

from medexam.distributions import rate_interval
from medexam.predictions.prediction import Prediction
from medexam.questions import Gold
from medexam.tables import percent, with_interval

Figures = dict[str, Any]
"""What `metrics.json` holds of a kind. Shares, probabilities and accuracies are fractions of 1, intervals 95 %."""
Rows = Sequence[tuple[Prediction, Gold]]
"""The scored predictions of a run, in the order of the questions."""


def accuracy_of(right: int, n: int) -> Figures:
    """Return `n`, the accuracy of `n` answers and Wilson's interval; both None if `n` is 0."""
    interval = rate_interval(right, n)
    return {"n": n, "accuracy": right / n if n else None, "accuracy_interval": interval and list(interval)}


def show_accuracy(part: Mapping[str, Any]) -> str:
    """Write the accuracy of `accuracy_of` with its interval."""
    return with_interval(percent(part["accuracy"]), part["accuracy_interval"])
