"""What a number of questions can show: a margin that two runs keep, the smallest difference, and the noise of repeats.

**Margins.** Two one-sided tests make one of equivalence (Schuirmann 1987, "A comparison of the two one-sided tests
procedure and the power approach"); the lower one alone is a test of non-inferiority.

**Power.** The normal approximation of Connor (1987, "Sample size for testing differences in proportions for the
paired-sample design") to McNemar's test: two-sided, at the level `ALPHA`.

**Repeats.** A one-way analysis of variance with questions as groups and askings as their members (Searle, Casella and
McCulloch 1992, "Variance components", chapter 3).

All take questions as independent, so that whole exams that differ much need more. Differences, margins, shares, scores
and deviations are fractions of 1.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from medexam.frozen_model import FrozenModel
from medexam.measures.intervals import Floats
from medexam.measures.paired import ALPHA, NO_DIFFERENCE, Difference

ONE_SIDED = ALPHA / 2
"""The level of each one-sided test, so that it agrees with the 95 % interval of the same difference."""
FLIPPED = 0.3
"""Share of the questions that one of two runs has right and the other has not, before any run tells it."""
POWER = 0.8
"""How often a difference of the detectable size is found: in 80 of 100 repetitions."""
_QUANTILE = NormalDist().inv_cdf(1 - ALPHA / 2)
_OF_POWER = NormalDist().inv_cdf(POWER)

Told = Literal["equivalent", "not equivalent", "not shown"]
"""What may be said of two runs and a margin."""


class MarginTest(NamedTuple):
    """One run beside the baseline, and a margin on both sides of no difference."""

    p_worse: float
    """How likely so good a result is of a run that is worse by the margin: the test of non-inferiority."""
    p_better: float
    """How likely so bad a result is of a run that is better by the margin."""

    @property
    def p(self) -> float:
        """The p-value of equivalence: the larger of the two."""
        return max(self)


def score_test(lost: int, gained: int, n: int, margin: float) -> MarginTest:
    """Test `gained` against `lost` of `n` questions, one or more, taken as independent; `margin` is over 0.

    Tango (1998), "Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design": a score test, which without a margin is McNemar's without correction.
    """
    p_worse, p_better = (NormalDist().cdf(sign * _score(lost, gained, n, sign * margin)) for sign in (-1, 1))
    return MarginTest(p_worse, p_better)


def judge_margin(difference: Difference, margin: float, p_adjusted: float) -> Told:
    """Judge the difference: `equivalent` only if its interval lies within the margin and p says so too.

    `p_adjusted` is the p-value of equivalence, adjusted for all pairs. `not equivalent` if the interval lies outside.
    """
    bounds = difference.bounds
    if bounds is None:
        return "not shown"
    low, high = bounds
    if low >= margin or high <= -margin:
        return "not equivalent"
    return "equivalent" if -margin < low and high < margin and p_adjusted < ONE_SIDED else "not shown"


def _score(lost: int, gained: int, n: int, theta: float) -> float:
    """Compute Tango's statistic: how far `gained - lost` lies over what a difference of `theta` makes likely."""
    if theta < 0:
        return -_score(gained, lost, n, -theta)
    over = gained - lost - n * theta
    if over == 0:
        return 0.0
    # The share of lost questions that is likeliest if the difference is `theta`: a root of a quadratic equation.
    a = 2 * n
    b = (2 * n - gained + lost) * theta - gained - lost
    c = -lost * theta * (1 - theta)
    share = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    return over / math.sqrt(n * (2 * share + theta * (1 - theta)))


def detectable_difference(n: int, flipped: float) -> float | None:
    """Find the smallest difference of accuracy that `n` questions show with `POWER`.

    `flipped` is the share of questions that one run has right and the other has not. None if the test finds no
    difference that such a share of flips allows.
    """
    if n < 1 or flipped <= 0:
        return None
    # Connor's equation for n, solved for the difference: a quadratic, of which the larger root is wanted.
    a = n + _OF_POWER**2
    half_b = math.sqrt(n * flipped) * _QUANTILE
    c = flipped * (_QUANTILE**2 - _OF_POWER**2)
    difference = (half_b + math.sqrt(max(half_b**2 - a * c, 0.0))) / a
    return difference if difference <= flipped else None


def questions_needed(difference: float, flipped: float) -> int | None:
    """Compute how many questions show `difference` with `POWER`; None if it is 0, or larger than `flipped`."""
    size = abs(difference)
    if size == 0 or size > flipped:
        return None
    root = _QUANTILE * math.sqrt(flipped) + _OF_POWER * math.sqrt(flipped - size**2)
    return math.ceil((root / size) ** 2)


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


def measure_noise(scores: Floats, answers: Sequence[Sequence[object]]) -> Noise:
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
