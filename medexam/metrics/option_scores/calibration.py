"""Whether a program is right as often as it is confident: reliability bins, ECE and the Brier score.

Only numbers in, numbers out; it knows nothing of questions or predictions.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from medexam.metrics.intervals import rate_interval
from medexam.metrics.option_scores.results import ReliabilityBin

BINS = 10


def reliability_bins(confidences: Sequence[float], right: Sequence[bool]) -> tuple[ReliabilityBin, ...]:
    """Ten bins of equal width over the confidence, the upper edge included; item i of both is question i.

    Guo et al. (2017), "On calibration of modern neural networks".
    """
    edges = [(place + 1) / BINS for place in range(BINS)]
    members: list[list[tuple[float, bool]]] = [[] for _ in edges]
    for confidence, is_right in zip(confidences, right, strict=True):
        members[bisect_left(edges, confidence)].append((confidence, is_right))
    return tuple(_bin(place / BINS, edges[place], inside) for place, inside in enumerate(members))


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """The mean of |accuracy - mean confidence| over the bins, weighted by their questions; at least one question."""
    n = sum(part.n for part in bins)
    return math.fsum(part.n / n * abs((part.accuracy or 0.0) - (part.mean_confidence or 0.0)) for part in bins)


def brier_score(probabilities: Sequence[Mapping[int, float]], golds: Sequence[int]) -> float:
    """The mean over the questions of the sum over the options of (p - [gold])^2; at least one question.

    Item i of both is question i: the probability of each printed number, and the number that is right. Brier (1950),
    "Verification of forecasts expressed in terms of probability": 0 is perfect and 2 the worst.
    """
    losses = [
        math.fsum((p - (number == gold)) ** 2 for number, p in options.items())
        for options, gold in zip(probabilities, golds, strict=True)
    ]
    return math.fsum(losses) / len(losses)


def _bin(low: float, high: float, inside: Sequence[tuple[float, bool]]) -> ReliabilityBin:
    n = len(inside)
    right = sum(is_right for _, is_right in inside)
    return ReliabilityBin(
        low=low,
        high=high,
        n=n,
        mean_confidence=math.fsum(confidence for confidence, _ in inside) / n if n else None,
        accuracy=right / n if n else None,
        accuracy_interval=rate_interval(right, n),
    )
