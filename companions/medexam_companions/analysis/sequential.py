"""When a comparison of two runs on the same questions may end, looked at as often as one likes.

A bet on the differences of the questions (1: only the run is right, -1: only the baseline, 0: both alike) multiplies a
capital of 1 by `1 + bet * (difference - mean)`. If the true mean is `mean` or less, the capital reaches 1 / level with
a probability of at most `level`, whenever one looks (Ville's inequality). This is a test by betting (Waudby-Smith and
Ramdas 2024, "Estimating means of bounded random variables by betting"); the means that it does not reject are a
confidence sequence. Against a mean of 0 it is Wald's sequential probability ratio test on McNemar's discordant pairs,
mixed over two alternatives (Robbins 1970). Questions are taken as independent; differences are fractions of 1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.measures import ALPHA, FLIPPED

LARGEST_BET = 0.45
"""Under one half, no difference of a question takes the whole capital, whatever mean is tested."""
FOUND_BY = (1.0, 2.0)
"""Sizes of the bets that find a difference, as multiples of the best one if the true difference is the stated one."""
SMALL_BY = (0.6, 1.0)
"""Sizes of those that find it small: the best ones if it is 0, and 50 or 30 % are right in one run alone."""
_LARGEST_LOG = 700.0
"""e to the power of more is no floating-point number."""


BETTER, WORSE, SMALL = "better", "worse", "no difference"
"""How a comparison may end: the run is better than the baseline or worse, or there is no difference of the stated size
or more in either direction."""


@dataclass(frozen=True)
class SequentialTest:
    """A test that is tuned to one size of difference, and valid for all."""

    difference: float
    """The smallest difference of accuracy that matters; over 0."""
    power: float
    """A true difference of that size is called none with a probability of at most 1 - power."""
    level: float = ALPHA
    """`better` and `worse` are false with a probability of at most this, together."""

    def evidence(self, gained: Any, lost: Any, n: Any) -> dict[str, Any]:
        """Map each ending to its e-value: over 20, say, with a probability of at most 1 in 20 if it is false.

        Of `n` questions the run alone has `gained` right, and the baseline alone `lost`; numbers or arrays. That there
        is no difference has the e-value of the direction for which there is less evidence.
        """
        up, down = (self._capital(*flips, n, 0.0, FOUND_BY) for flips in ((gained, lost), (lost, gained)))
        above, below = (
            self._capital(*flips, n, -self.difference, SMALL_BY) for flips in ((lost, gained), (gained, lost))
        )
        logs = {BETTER: up, WORSE: down, SMALL: np.minimum(above, below)}
        return {ending: np.exp(np.minimum(log, _LARGEST_LOG)) for ending, log in logs.items()}

    @property
    def needed(self) -> dict[str, float]:
        """Ending -> the e-value from which it holds."""
        return {BETTER: 2 / self.level, WORSE: 2 / self.level, SMALL: 1 / (1 - self.power)}

    def decide(self, gained: int, lost: int, n: int) -> str | None:
        """Decide how the comparison ends with these counts; None: more has to be asked."""
        evidence, needed = self.evidence(gained, lost, n), self.needed
        return next((ending for ending, value in evidence.items() if value >= needed[ending]), None)

    def interval(self, gained: int, lost: int, n: int) -> tuple[float, float]:
        """Find the confidence sequence at these counts: it holds the true difference at all looks with 1 - level."""
        low, high = (self._lower(*flips, n) for flips in ((gained, lost), (lost, gained)))
        return low, -high

    def _lower(self, gained: int, lost: int, n: int) -> float:
        """Find the largest mean that is rejected from above; -1 where none is."""

        def over(mean: float) -> float:
            return float(self._capital(gained, lost, n, mean, FOUND_BY) - np.log(self.needed[BETTER]))

        if over(-1.0) <= 0:
            return -1.0
        low, high, rises = -1.0, 1.0, over(1.0) > 0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if (over(middle) > 0) == rises else (middle, high)
        return (low + high) / 2

    def _capital(self, gained: Any, lost: Any, n: Any, mean: float, sizes: tuple[float, ...]) -> NDArray[np.float64]:
        """Compute the logarithm of the mean capital of bets that the true mean is over `mean`.

        Each bet is one of `sizes` times the best one if the true difference is the stated one.
        """
        bets = [min(LARGEST_BET, size * self.difference / FLIPPED) for size in sizes]
        gained, lost, n = (np.asarray(count, dtype=float) for count in (gained, lost, n))
        capitals = [
            gained * np.log1p(bet * (1 - mean))
            + lost * np.log1p(bet * (-1 - mean))
            + (n - gained - lost) * np.log1p(-bet * mean)
            for bet in bets
        ]
        mixed: NDArray[np.float64] = np.logaddexp.reduce(capitals, axis=0) - np.log(len(bets))
        return mixed
