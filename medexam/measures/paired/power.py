"""How small a difference between two runs McNemar's test can find on a number of questions, and how many it needs.

By the normal approximation of Connor (1987, "Sample size for testing differences in proportions for the paired-sample
design"): two-sided, at the level `ALPHA`. It takes questions as independent, so that whole exams that differ much
need more. Differences and shares are fractions of 1.
"""

import math
from statistics import NormalDist

from medexam.measures.paired.significance import ALPHA

FLIPPED = 0.3
"""Share of the questions that one of two runs has right and the other has not, before any run tells it."""
POWER = 0.8
"""How often a difference of the detectable size is found: in 80 of 100 repetitions."""
_LEVEL = NormalDist().inv_cdf(1 - ALPHA / 2)
_FOUND = NormalDist().inv_cdf(POWER)


def detectable_difference(n: int, flipped: float) -> float | None:
    """Find the smallest difference of accuracy that `n` questions show with `POWER`.

    `flipped` is the share of questions that one run has right and the other has not. None if the test finds no
    difference that such a share of flips allows.
    """
    if n < 1 or flipped <= 0:
        return None
    # Connor's equation for n, solved for the difference: a quadratic, of which the larger root is wanted.
    a = n + _FOUND**2
    half_b = math.sqrt(n * flipped) * _LEVEL
    c = flipped * (_LEVEL**2 - _FOUND**2)
    difference = (half_b + math.sqrt(max(half_b**2 - a * c, 0.0))) / a
    return difference if difference <= flipped else None


def questions_needed(difference: float, flipped: float) -> int | None:
    """Compute how many questions show `difference` with `POWER`; None if it is 0, or larger than `flipped`."""
    size = abs(difference)
    if size == 0 or size > flipped:
        return None
    root = _LEVEL * math.sqrt(flipped) + _FOUND * math.sqrt(flipped - size**2)
    return math.ceil((root / size) ** 2)
