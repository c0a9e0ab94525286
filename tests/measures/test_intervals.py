"""Intervals of exams against statsmodels, the normal distribution and bootstraps written out by hand."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from medexam.measures import Resampling


def _exam(right: int, wrong: int, blank: int = 0) -> str:
    return "r" * right + "w" * wrong + "u" * blank


@pytest.mark.parametrize(("successes", "n"), [(1, 1), (0, 5), (3, 10), (50, 100), (190, 676), (676, 676), (0, 676)])
def test_rates_have_wilsons_interval(score, successes, n) -> None:
    metrics = score(_exam(successes, 0, n - successes))
    known = proportion_confint(successes, n, method="wilson")
    assert metrics.measure("accuracy").interval == pytest.approx(known, abs=1e-12)
    assert metrics.measure("unanswered_ratio").interval == pytest.approx(
        proportion_confint(n - successes, n, method="wilson"), abs=1e-12
    )


def test_the_bootstrap_draws_whole_exams(score) -> None:
    rng = np.random.default_rng(3)
    rights = rng.integers(8, 24, size=30)
    points = np.array([*(4 * rights - 40), 11.0])
    n = np.array([40] * 30 + [20])
    draws = rng.integers(0, 31, size=(20_000, 31))
    expected_score = np.percentile(points[draws].sum(1) / (3 * n[draws].sum(1)), [2.5, 97.5])
    expected_points = np.percentile(points[draws].mean(1), [2.5, 97.5])
    exams = [*(_exam(right, 40 - right) for right in rights.tolist()), _exam(5, 4, 11)]
    metrics = score(*exams)
    assert metrics.measure("exam_score").resampled is metrics.measure("points").resampled is Resampling.CLUSTERS
    width = expected_score[1] - expected_score[0]
    assert metrics.measure("exam_score").interval == pytest.approx(expected_score, abs=0.03 * width)
    width = expected_points[1] - expected_points[0]
    assert metrics.measure("points").interval == pytest.approx(expected_points, abs=0.03 * width)
    assert score(*exams) == metrics


@pytest.mark.parametrize("count", [1, 4])
def test_few_exams_have_their_own_questions_drawn(score, count) -> None:
    """The exams are alike, so that a bootstrap over exams would have no width."""
    metrics = score(*[_exam(60, 130, 10)] * count)
    draws = np.random.default_rng(3).choice(np.repeat([3, -1, 0], (60, 130, 10)), size=(20_000, count, 200)).sum(axis=2)
    for found, values in (
        (metrics.measure("exam_score").interval, draws.sum(1) / (600 * count)),
        (metrics.measure("points").interval, draws.mean(1)),
    ):
        low, high = np.percentile(values, [2.5, 97.5])
        assert found == pytest.approx((low, high), abs=0.04 * (high - low))
    assert metrics.measure("exam_score").resampled is metrics.measure("points").resampled is Resampling.WITHIN_EXAMS


@pytest.mark.parametrize(
    ("exams", "resampled"),
    [
        ([_exam(5, 15)] * 2 + [_exam(9, 12)] * 3, Resampling.CLUSTERS),
        ([_exam(2, 2)], Resampling.TOO_FEW),
        ([_exam(90, 90), _exam(4, 0)], Resampling.TOO_FEW),
        ([_exam(50, 0), _exam(0, 20)], Resampling.ALIKE),
        ([_exam(12, 0)] * 12, Resampling.ALIKE),
        ([_exam(0, 4)] * 6, Resampling.ALIKE),
    ],
)
def test_what_is_resampled(score, exams, resampled) -> None:
    metrics = score(*exams)
    assert metrics.measure("exam_score").resampled is metrics.measure("points").resampled is resampled
    assert (metrics.measure("exam_score").interval is None) == (resampled is not Resampling.CLUSTERS)


def test_questions_of_no_exam_are_resampled_one_by_one(score) -> None:
    """The error of a mean is known, so a bootstrap of six thousand questions is, too."""
    metrics = score(_exam(3000, 2000, 1000), independent=True)
    marks = np.repeat([1, -1 / 3, 0], (3000, 2000, 1000))
    error = 1.96 * marks.std() / np.sqrt(6000)
    low, high = marks.mean() - error, marks.mean() + error
    assert metrics.measure("exam_score").interval == pytest.approx((low, high), abs=0.04 * (high - low))
