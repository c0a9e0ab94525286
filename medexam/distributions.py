"""Wilson's interval of a rate, and tails of distributions, by the standard library alone.

They agree with scipy's, which would be a fifth of the installation.
"""

import math
from functools import lru_cache

LEVEL = 0.95
_Z = 1.959963984540054
"""Standard deviations around the mean of a normal distribution that hold so much of it."""
WILSON = "Wilson, as if questions were independent"
"""What legends call the interval of a rate of questions: it does not know that those of one exam go together."""


def rate_interval(successes: int, n: int) -> tuple[float, float] | None:
    """Compute Wilson's score interval of `successes / n`, fractions of 1; None if `n` is 0.

    Wilson (1927), "Probable inference, the law of succession, and statistical inference".
    """
    if n == 0:
        return None
    # In the arithmetic of `scipy.stats.binomtest`, to the last digit, which takes longer to import than to score a run.
    rate, twice = successes / n, 2 * (n + _Z**2)
    middle = (2 * n * rate + _Z**2) / twice
    half = _Z / twice * math.sqrt(4 * n * rate * (1 - rate) + _Z**2)
    # At the ends the formula gives exactly 0 or 1; floating point leaves a trace of 1e-20.
    return 0.0 if successes == 0 else middle - half, 1.0 if successes == n else middle + half


@lru_cache(maxsize=2**16)
def coin_tail(k: int, n: int) -> float:
    """Compute how likely at most `k` of `n` fair coins show heads."""
    total = term = math.comb(n, k)
    for heads in range(k, 0, -1):
        term = term * heads // (n - heads + 1)
        total += term
        if term < total >> 64:
            break
    return total / (1 << n)


def chi_square_tail(value: float, degrees: int) -> float:
    """Compute how likely a chi-square variable with one degree of freedom or more is over `value`."""
    if value <= 0:
        return 1.0
    half = value / 2
    shape, tail = (0.5, math.erfc(math.sqrt(half))) if degrees % 2 else (1.0, math.exp(-half))
    while shape < degrees / 2:
        tail += math.exp(shape * math.log(half) - half - math.lgamma(shape + 1))
        shape += 1
    return tail
