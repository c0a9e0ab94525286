"""How far a run's answers vary if it is asked the same again, beside how far its score varies with the questions.

A one-way analysis of variance with questions as groups and askings as their members (Searle, Casella and McCulloch
1992, "Variance components", chapter 3). It takes questions as independent. Scores and deviations are fractions of 1.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from medexam.frozen_model import FrozenModel
from medexam.measures.paired.significance import ALPHA, NO_DIFFERENCE

_QUANTILE = NormalDist().inv_cdf(1 - ALPHA / 2)


class Noise(FrozenModel):
    """One run that was asked the same questions two times or more."""

    askings: int
    n: int
    """Questions that all askings have scored."""
    changed: int
    """Of these, questions with two different answers or more."""
    flipped: int
    """Of these, questions with two different scores or more."""
    scores: tuple[float, ...]
    """The mean score of each asking, the run itself first."""
    server: float
    """Standard deviation of the mean score of one asking, due to other answers to the same requests."""
    questions: float
    """The same, due to which questions are asked."""


def measure_noise(scores: NDArray[np.float64], answers: Sequence[Sequence[object]]) -> Noise:
    """Measure a run's noise; row i of `scores` and `answers` is asking i, column j question j, two of both or more."""
    askings, n = scores.shape
    means = scores.mean(axis=0)
    within = float(scores.var(axis=0, ddof=1).mean())
    between = float(askings * means.var(ddof=1))
    return Noise(
        askings=askings,
        n=n,
        changed=sum(len(set(each)) > 1 for each in zip(*answers, strict=True)),
        flipped=int((np.ptp(scores, axis=0) > NO_DIFFERENCE).sum()),
        scores=tuple(map(float, scores.mean(axis=1))),
        server=math.sqrt(within / n),
        questions=math.sqrt(max(between - within, 0.0) / askings / n),
    )


def noise_floor(baseline: Noise | None, other: Noise | None) -> float | None:
    """Find the difference that 95 % of comparisons stay under if only the answers to the same requests vary.

    None if neither run was asked again; if one was not, it is taken to vary as the other one.
    """
    deviations = [noise.server for noise in (baseline, other) if noise is not None]
    return _QUANTILE * math.hypot(deviations[0], deviations[-1]) if deviations else None
