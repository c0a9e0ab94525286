"""The weights of an ensemble's members, fitted on questions whose right answers are known.

McFadden (1974), "Conditional logit analysis of qualitative choice behavior": the probability of an option is the
softmax of its members' probabilities, each times the member's weight. So one weight a member serves questions with any
number of options, in any order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RIDGE = 0.01
"""Half of it times the squared weights is added to the loss, so that a member without a fault has a finite weight."""
_MOST_STEPS = 200
_SMALL = 1e-12
"""Share of the value below which a step is the last."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stacking:
    """Fitted weights."""

    weights: tuple[float, ...]
    """One a member: what a probability of 1 instead of 0 adds to the log-odds of an option."""
    n: int
    """Questions that they were fitted on."""
    log_loss: float
    """Mean of minus the log of the right option's probability on these, in nats."""
    uniform_log_loss: float
    """What a uniform choice among the options has there."""


def fit_stacking(chances: Sequence[Floats], rights: Sequence[Sequence[bool]]) -> Stacking:
    """Fit one weight a member.

    Item i of both is question i. Row j of `chances[i]` holds each member's probability of option j; `rights[i][j]` says
    whether the option is right, of which at least one is. There is at least one question.
    """
    features, is_option, is_right = _padded(chances, rights)

    def look(weights: Floats) -> tuple[float, Floats, Floats]:
        """Compute the loss, its gradient, and the second derivatives if one option of each question is right."""
        logits = np.where(is_option, features @ weights, -np.inf)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = odds / odds.sum(axis=1, keepdims=True)
        right_odds = np.where(is_right, odds, 0.0)
        right = right_odds.sum(axis=1) / odds.sum(axis=1)
        expected = np.einsum("nj,njm->nm", probabilities, features)
        observed = np.einsum("nj,njm->m", right_odds / right_odds.sum(axis=1, keepdims=True), features)
        spread = np.einsum("nj,njm,njk->mk", probabilities, features, features) - expected.T @ expected
        value = float(-np.log(right).sum() + RIDGE / 2 * weights @ weights)
        return value, expected.sum(axis=0) - observed + RIDGE * weights, spread + RIDGE * np.eye(len(weights))

    start = np.zeros(features.shape[2])
    weights = _minimise(look, start)
    n = len(features)
    mean = (look(weights)[0] - RIDGE / 2 * weights @ weights) / n
    return Stacking(tuple(float(weight) for weight in weights), n, float(mean), look(start)[0] / n)


def _minimise(look: Callable[[Floats], tuple[float, Floats, Floats]], point: Floats) -> Floats:
    """Minimise by Newton's method; a step that does not lower the value by enough is halved."""
    for _ in range(_MOST_STEPS):
        value, slope, curvature = look(point)
        step = np.linalg.lstsq(curvature, slope)[0]
        gain = float(slope @ step)
        if gain <= _SMALL * max(1.0, abs(value)):
            # Nearer, the value's rounding hides what a step gains.
            return np.asarray(point - step)
        while look(point - step)[0] > value - gain / 4:
            step, gain = step / 2, gain / 2
        point = point - step
    return point


def _padded(chances: Sequence[Floats], rights: Sequence[Sequence[bool]]) -> tuple[Floats, Any, Any]:
    """Build `[n, options, members]` and two masks `[n, options]`; questions with fewer options are filled up."""
    most = max(len(flags) for flags in rights)
    features = np.zeros((len(chances), most, chances[0].shape[1]))
    is_option, is_right = np.zeros((2, len(chances), most), dtype=bool)
    for row, (option_chances, right) in enumerate(zip(chances, rights, strict=True)):
        features[row, : len(right)] = option_chances
        is_option[row, : len(right)] = True
        is_right[row, : len(right)] = right
    return features, is_option, is_right
