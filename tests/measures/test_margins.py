"""Tests against a margin: likelihoods from scipy."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from medexam.measures import Difference, Resampling, judge_margin, score_test

TABLES = [(76, 95, 1020), (1, 7, 21), (0, 3, 40), (12, 2, 50), (0, 0, 240)]


def statistic(lost: int, gained: int, n: int, theta: float) -> float:
    """The score statistic with the likeliest share of lost questions found by a search."""

    def unlikely(share: float) -> float:
        shares = (share, share + theta, 1 - 2 * share - theta)
        counts = (lost, gained, n - lost - gained)
        return -sum(count * np.log(max(each, 1e-300)) for count, each in zip(counts, shares, strict=True) if count)

    low, high = max(0.0, -theta), (1 - theta) / 2
    share = minimize_scalar(unlikely, bounds=(low, high), method="bounded", options={"xatol": 1e-13}).x
    return (gained - lost - n * theta) / np.sqrt(n * (2 * share + theta - theta**2))


@pytest.mark.parametrize(("lost", "gained", "n"), TABLES)
@pytest.mark.parametrize("margin", [0.01, 0.05])
def test_p_values_are_those_of_the_likeliest_shares(lost, gained, n, margin) -> None:
    found = score_test(lost, gained, n, margin)
    assert found.p_worse == pytest.approx(norm.sf(statistic(lost, gained, n, -margin)), abs=2e-7)
    assert found.p_better == pytest.approx(norm.cdf(statistic(lost, gained, n, margin)), abs=2e-7)
    assert found.p == max(found.p_worse, found.p_better)


def test_only_an_interval_within_the_margin_is_equivalent() -> None:
    def told(low: float, high: float, p: float = 0.001) -> str:
        return judge_margin(Difference(value=(low + high) / 2, interval=(low, high)), 0.02, p)

    assert told(-0.019, 0.019) == "equivalent"
    assert told(-0.019, 0.019, p=0.03) == "not shown"
    assert told(-0.01, 0.021) == "not shown"
    assert (told(0.02, 0.05), told(-0.05, -0.02)) == ("not equivalent", "not equivalent")
    alike = Difference(value=0.0, interval=None, resampled=Resampling.ALIKE)
    few = Difference(value=0.0, interval=None, resampled=Resampling.TOO_FEW)
    assert (judge_margin(alike, 0.02, 0.01), judge_margin(few, 0.02, 0.01)) == ("equivalent", "not shown")
