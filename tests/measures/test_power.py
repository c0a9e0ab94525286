"""The smallest difference that questions show, against McNemar's exact test by enumeration."""

import math

import pytest
from scipy.stats import binom

from medexam.measures import detectable_difference, mcnemar_p, questions_needed


def exact_power(n: int, difference: float, flipped: float) -> float:
    """How often McNemar's exact test finds the difference: over every number of flips and every way they divide."""
    gained = (flipped + difference) / 2 / flipped
    power = 0.0
    for flips in range(int(binom.ppf(1e-6, n, flipped)), int(binom.ppf(1 - 1e-6, n, flipped)) + 1):
        critical = next((few for few in range(flips // 2, -1, -1) if mcnemar_p(few, flips - few) < 0.05), -1)
        found = binom.cdf(critical, flips, gained) + binom.sf(flips - critical - 1, flips, gained)
        power += float(binom.pmf(flips, n, flipped) * found)
    return power


@pytest.mark.parametrize(("n", "flipped"), [(240, 0.3), (1020, 0.2)])
def test_the_detectable_difference_is_found_four_times_in_five(n, flipped) -> None:
    difference = detectable_difference(n, flipped)
    assert difference is not None
    # The exact test is a little stricter than the approximation.
    assert exact_power(n, difference, flipped) == pytest.approx(0.8, abs=0.035)


@pytest.mark.parametrize("flipped", [0.1, 0.25, 0.6])
def test_both_say_the_same(flipped) -> None:
    needed = questions_needed(0.03, flipped)
    assert needed is not None
    assert detectable_difference(needed, flipped) == pytest.approx(0.03, rel=1e-3)
    assert questions_needed(-0.03, flipped) == needed


def test_what_cannot_be_shown_is_none() -> None:
    assert detectable_difference(0, 0.3) is None
    assert detectable_difference(20, 0.0) is None
    assert detectable_difference(10, 0.05) is None
    assert questions_needed(0.0, 0.3) is None
    assert questions_needed(0.3, 0.2) is None
    assert math.isclose(detectable_difference(10_000_000, 0.3) or 1, 0.00049, rel_tol=0.02)
