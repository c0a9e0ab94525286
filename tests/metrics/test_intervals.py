"""Intervals against closed forms and a bootstrap written out by hand."""

import math

import numpy as np
import pytest

from medexam.distributions import rate_interval
from medexam.metrics import Resampling, Tally, intervals
from medexam.metrics.intervals import score_intervals


def _wilson(successes: int, n: int) -> tuple[float, float]:
    z = 1.959963984540054
    rate = successes / n
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    return centre - half, centre + half


@pytest.mark.parametrize(("successes", "n"), [(1, 1), (0, 5), (3, 10), (50, 100), (1903, 6765), (6765, 6765)])
def test_wilson_agrees_with_its_formula(successes, n) -> None:
    assert rate_interval(successes, n) == pytest.approx(_wilson(successes, n), abs=1e-12)


def test_a_rate_at_the_end_has_an_interval_that_ends_there() -> None:
    assert rate_interval(0, 6765)[0] == 0.0
    assert rate_interval(6765, 6765)[1] == 1.0


def test_a_rate_of_nothing_has_no_interval() -> None:
    assert rate_interval(0, 0) is None


def test_the_bootstrap_draws_whole_exams() -> None:
    rng = np.random.default_rng(3)
    exams = [Tally(right=int(r), wrong=200 - int(r)) for r in rng.integers(40, 120, size=30)]
    exams.append(Tally(right=5, wrong=4, unanswered=11))
    points = np.array([exam.points for exam in exams])
    n = np.array([exam.n for exam in exams])
    draws = rng.integers(0, len(exams), size=(20_000, len(exams)))
    expected_score = np.percentile(points[draws].sum(1) / (3 * n[draws].sum(1)), [2.5, 97.5])
    expected_points = np.percentile(points[draws].mean(1), [2.5, 97.5])
    (score, over), (average, _) = score_intervals(exams)
    assert over is Resampling.CLUSTERS
    width = expected_score[1] - expected_score[0]
    assert score == pytest.approx(expected_score, abs=0.03 * width)
    assert average == pytest.approx(expected_points, abs=0.03 * (expected_points[1] - expected_points[0]))


def test_scoring_again_gives_the_same_interval() -> None:
    exams = [Tally(right=3, wrong=7), Tally(right=6, wrong=4), Tally(right=5, wrong=5)]
    assert score_intervals(exams) == score_intervals(exams)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_few_exams_have_their_own_questions_drawn(count) -> None:
    # Alike, so that a bootstrap over exams would have no width.
    exams = [Tally(right=60, wrong=130, unanswered=10)] * count
    outcomes = np.repeat([3, -1, 0], (60, 130, 10))
    draws = np.random.default_rng(3).choice(outcomes, size=(20_000, count, 200)).sum(axis=2)
    for (found, over), values in zip(
        score_intervals(exams), (draws.sum(1) / (600 * count), draws.mean(1)), strict=True
    ):
        low, high = np.percentile(values, [2.5, 97.5])
        assert over is Resampling.WITHIN_EXAMS
        assert found == pytest.approx((low, high), abs=0.04 * (high - low))


def test_five_exams_are_drawn_whole() -> None:
    exams = [Tally(right=30 + 5 * place, wrong=100) for place in range(5)]
    assert [over for _, over in score_intervals(exams)] == [Resampling.CLUSTERS] * 2


@pytest.mark.parametrize("exams", [[], [Tally(right=2, wrong=2)], [Tally(right=90, wrong=90), Tally(right=4)]])
def test_few_exams_with_few_questions_have_no_interval(exams) -> None:
    assert score_intervals(exams) == ((None, Resampling.TOO_FEW),) * 2


def test_few_exams_without_variation_have_no_interval() -> None:
    assert score_intervals([Tally(right=50), Tally(wrong=20)]) == ((None, Resampling.ALIKE),) * 2


@pytest.mark.parametrize("kind", ["questions", "measured"])
def test_many_clusters_have_the_interval_of_a_bootstrap_that_draws_each(monkeypatch, kind) -> None:
    drawn = np.random.default_rng(5)
    values = drawn.choice([3.0, -1.0, 0.0], 6_000) if kind == "questions" else drawn.normal(size=6_000)
    sums = np.column_stack([values, np.ones(6_000)])

    def mean(total, n, exams):
        return np.stack([total / n, total / exams])

    def unused():
        raise AssertionError

    ((low, high), _), again = intervals.resample(sums, unused, mean, 2)
    assert again[0] == (low, high)
    monkeypatch.setattr(intervals, "MANY", 10_000)
    ((by_scipy, to_scipy), _), _ = intervals.resample(sums, unused, mean, 2)
    width = to_scipy - by_scipy
    assert low == pytest.approx(by_scipy, abs=0.04 * width)
    assert high == pytest.approx(to_scipy, abs=0.04 * width)
    # A mean's own interval, by the normal distribution.
    error = 1.96 * values.std() / np.sqrt(6_000)
    assert (low, high) == pytest.approx((values.mean() - error, values.mean() + error), abs=0.04 * width)


def test_the_interval_of_few_clusters_does_not_depend_on_how_many_are_drawn_at_once(monkeypatch) -> None:
    sums = np.column_stack([np.arange(7.0), np.full(7, 10.0)])
    first = intervals.resample(sums, list, lambda total, n, exams: np.stack([total / n]), 1)
    monkeypatch.setattr(intervals, "_DRAWN_AT_ONCE", 100)
    assert intervals.resample(sums, list, lambda total, n, exams: np.stack([total / n]), 1) == first
