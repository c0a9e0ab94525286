"""Tests against a margin: published intervals, likelihoods from scipy, statsmodels, simulated error rates."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from statsmodels.stats.weightstats import ttost_paired

from medexam.measures import Difference, Resampling, cluster_test, judge_margin, score_interval, score_test

ONE_SIDED = 0.025
"""Of two one-sided tests, so that both together err in 5 % of comparisons."""

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


@pytest.mark.parametrize(("lost", "gained", "n"), TABLES)
def test_the_interval_ends_where_the_test_begins_to_reject(lost, gained, n) -> None:
    low, high = score_interval(lost, gained, n)
    assert score_test(lost, gained, n, -low).p_worse == pytest.approx(ONE_SIDED, abs=1e-9)
    assert score_test(lost, gained, n, high).p_better == pytest.approx(ONE_SIDED, abs=1e-9)
    assert score_interval(gained, lost, n) == pytest.approx((-high, -low), abs=1e-9)


def test_intervals_are_the_published_ones() -> None:
    """Of Newcombe (1998, "Improved confidence intervals ... based on paired data") and of Fagerland et al. (2014)."""
    assert score_interval(2, 12, 50) == pytest.approx((0.0611, 0.3447), abs=5e-5)
    assert score_interval(7, 1, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    square = norm.ppf(0.975) ** 2
    assert score_interval(0, 0, 50) == pytest.approx((-square / (50 + square), square / (50 + square)), abs=1e-9)
    assert score_interval(50, 0, 50)[0] == -1.0


def test_whole_questions_are_those_of_statsmodels() -> None:
    rng = np.random.default_rng(3)
    before, after = rng.random(60), rng.random(60)
    known, (_, lower, _), (_, upper, _) = ttost_paired(after, before, -0.1, 0.1)
    found = cluster_test([[each] for each in after - before], 0.1)
    assert (found.p_worse, found.p_better) == pytest.approx((lower, upper), abs=1e-9)
    assert found.p == pytest.approx(known, abs=1e-9)


def test_questions_that_are_all_alike_are_counted() -> None:
    assert cluster_test([[0.0]] * 8, 0.05).p == pytest.approx(0.5**8)
    assert cluster_test([[0.2, 0.2]] * 8, 0.05).p == 1.0


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
