"""Means over answers in words, and their intervals."""

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap

from medexam.measures import Resampling, SpanBenchmark, mean_measure
from medexam.predictions import Failure, Reason, Status
from medexam.questions import Task, TaskGold
from predicted import predicted
from task_sets import score_tasks


def test_rates_have_wilsons_interval() -> None:
    measure = mean_measure({"a": 1.0, "b": 0.0, "c": 1.0, "d": 1.0})
    expected = binomtest(3, 4).proportion_ci(0.95, "wilson")
    assert (measure.value, measure.n) == (0.75, 4)
    assert measure.interval == pytest.approx((expected.low, expected.high))


def test_other_scores_have_percentiles_of_resamples() -> None:
    scores = {f"q{place}": value for place, value in enumerate((0.1, 0.5, 0.9, 0.3, 0.7, 0.2, 1.0, 0.0))}
    measure = mean_measure(scores)
    expected = bootstrap(
        (list(scores.values()),),
        np.mean,
        n_resamples=9_999,
        method="percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval
    assert measure.value == pytest.approx(sum(scores.values()) / 8)
    assert measure.interval == pytest.approx((expected.low, expected.high), abs=0.02)
    assert measure == mean_measure(scores)


def test_tasks_of_one_question_are_resampled_together() -> None:
    scores = {f"{question}/{variant}": float(question % 2) for question in range(8) for variant in "abcd"}
    alone = mean_measure(scores)
    together = mean_measure(scores, lambda key: key.split("/")[0])
    assert alone.value == together.value == 0.5
    low, high = binomtest(16, 32).proportion_ci(0.95, "wilson")
    assert alone.interval == pytest.approx((low, high))
    assert together.interval[0] < low
    assert together.interval[1] > high


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_where_all_score_alike_the_interval_counts_questions(score) -> None:
    scores = {f"{question}/{variant}": score for question in range(8) for variant in "abcd"}
    expected = binomtest(round(8 * score), 8).proportion_ci(0.95, "wilson")
    found = mean_measure(scores, lambda key: key.split("/")[0]).interval
    assert found == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("scores", "value", "n"), [({}, None, 0), ({"a": 0.0}, 0.0, 1), ({"a": 0.4}, 0.4, 1)])
def test_nothing_and_one_question_have_no_interval(scores, value, n) -> None:
    measure = mean_measure(scores)
    assert (measure.value, measure.n, measure.interval) == (value, n, None)


def test_fewer_than_five_questions_have_no_bootstrap() -> None:
    few = mean_measure({f"q{place}": 0.1 + 0.2 * place for place in range(4)})
    assert (few.interval, few.resampled) == (None, Resampling.TOO_FEW)
    assert few.model_dump(mode="json")["resampled"] == "none: too few questions"
    assert mean_measure({f"q{place}": 0.1 + 0.2 * place for place in range(5)}).resampled is Resampling.CLUSTERS


def test_failed_and_missing_tasks_are_counted_apart() -> None:
    tasks = [Task(key, "g", "en", "?") for key in "abcd"]
    same = {"program": "p", "spec_digest": "d"}
    predictions = {
        "a": predicted(question="a", status=Status.ANSWERED, text="x", prompt_tokens=3, latency_s=1.0, **same),
        "b": predicted(question="b", status=Status.UNANSWERED, reason=Reason.UNPARSED, latency_s=3.0, **same),
        "c": predicted(question="c", status=Status.FAILED, failure=Failure(kind="E", message="m"), **same),
    }
    scored = score_tasks(SpanBenchmark, tasks, {key: TaskGold(answers=("x",)) for key in "abcd"}, predictions)
    found = scored.metrics
    assert list(scored.items["f1"]) == ["a", "b"]
    assert (found.selected, found.n, found.unanswered, found.failed, found.missing) == (4, 2, 1, 1, 1)
    assert (found.prompt_tokens, found.completion_tokens, found.latency_p50_s) == (3, None, 2.0)
    assert found.latency_p95_s == pytest.approx(2.9)


def test_many_questions_have_the_normal_interval_of_their_mean() -> None:
    values = np.random.default_rng(5).normal(size=1_200)
    low, high = mean_measure({str(place): value for place, value in enumerate(values.tolist())}).interval
    error = 1.96 * values.std() / np.sqrt(1_200)
    assert (low, high) == pytest.approx((values.mean() - error, values.mean() + error), abs=0.08 * error)
