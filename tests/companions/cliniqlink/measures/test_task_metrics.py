"""Runs on ClinIQLink: perfect answers, empty ones and guided ones, by both profiles."""

import pytest

from medexam.benchmarks import find_benchmark
from medexam.companions.cliniqlink.measures.answers import gold_flaw
from medexam.companions.cliniqlink.measures.task_metrics import score_cliniqlink_run
from medexam.datasets import load_task_set
from medexam.predictions import Failure, Prediction, Reason, Status
from medexam.specs import DatasetSpec
from task_data import write_cliniqlink

SAME = {"program": "by_format", "spec_digest": "d"}
FORMATS = ["true_false", "multiple_choice", "list", "short", "short_inverse", "multi_hop", "multi_hop_inverse"]


@pytest.fixture
def small(tmp_path):
    return load_task_set(DatasetSpec(name="cliniqlink", path=write_cliniqlink(tmp_path / "cliniqlink")))


@pytest.fixture
def published(sample):
    """The 35 tasks of the benchmark's sample, where it is at hand."""
    assert len(sample) == 35
    return load_task_set(DatasetSpec(name="cliniqlink"))


def _perfect(task, gold) -> str:
    if task.group == "list":
        return ", ".join(gold.answers)
    if task.group == "short_inverse":
        return f"Incorrect Explanation: {gold.incorrect_explanation}"
    if task.group == "multi_hop_inverse":
        flaw = gold_flaw(gold.incorrect_step)
        return f"Incorrect Reasoning Step: {flaw.step}\nIncorrect Reasoning Explanation: {flaw.explanation}"
    return gold.answers[0]


def _answered(key: str, reply: str, text: str | None = None) -> Prediction:
    return Prediction(question=key, status=Status.ANSWERED, text=text or reply, reply=reply, **SAME)


def _all(data, answer) -> dict[str, Prediction]:
    return {task.key: answer(task, data.golds[task.key]) for task in data.questions}


def _score(data, predictions, encoder):
    return score_cliniqlink_run(data.questions, data.golds, predictions, encoder=encoder, references=data.references)


def _values(measures) -> dict[str, float]:
    return {name: measures[name].value for name in ("published", "paper")}


@pytest.mark.data
@pytest.mark.model
def test_perfect_answers_score_1_in_every_format(published, loaded_minilm) -> None:
    predictions = _all(published, lambda task, gold: _answered(task.key, _perfect(task, gold)))
    scores = find_benchmark(DatasetSpec(name=published.name)).score(published, predictions)
    metrics = scores.metrics
    assert (metrics.n, metrics.complete, list(metrics.by_group)) == (35, True, FORMATS)
    for kind, measures in metrics.by_group.items():
        assert _values(measures) == pytest.approx({"published": 1, "paper": 1}, abs=1e-6), kind
        assert measures["published"].n == 5
    assert _values(metrics.measures) == pytest.approx({"published": 1, "paper": 1}, abs=1e-6)
    assert set(scores.items["paper"]) == set(published.golds)
    assert find_benchmark(DatasetSpec(name=published.name)).score(published, predictions) == scores, "to the last digit"


@pytest.mark.data
@pytest.mark.model
def test_empty_answers_score_0_in_every_format(published, loaded_minilm) -> None:
    empty = {"status": Status.UNANSWERED, "reason": Reason.UNPARSED, "reply": ""}
    metrics = (
        find_benchmark(DatasetSpec(name=published.name))
        .score(published, _all(published, lambda task, _: Prediction(question=task.key, **empty, **SAME)))
        .metrics
    )
    assert (metrics.n, metrics.unanswered) == (35, 35)
    for kind, measures in metrics.by_group.items():
        assert _values(measures) == {"published": 0, "paper": 0}, kind
    assert _values(metrics.measures) == {"published": 0, "paper": 0}


def test_perfect_and_empty_answers_by_a_simple_encoder(small, letters) -> None:
    perfect = _score(small, _all(small, lambda task, gold: _answered(task.key, _perfect(task, gold))), letters).metrics
    for kind, measures in perfect.by_group.items():
        assert _values(measures) == pytest.approx({"published": 1, "paper": 1}, abs=1e-6), kind
    assert list(perfect.measures)[:2] == ["published", "paper"]


def test_guided_answers_are_scored_as_what_they_say(small, letters) -> None:
    """The calls of a guided list write letters and an end, which are no part of the answer."""
    predictions = _all(small, lambda task, gold: _answered(task.key, _perfect(task, gold)))
    (key,) = (task.key for task in small.questions if task.group == "list")
    predictions[key] = _answered(key, "B: Liver, C: Spleen.", "Liver, Spleen")
    metrics = _score(small, predictions, letters).metrics
    assert _values(metrics.by_group["list"]) == pytest.approx({"published": 1, "paper": 1})


def test_intervals_belong_to_means_over_items_alone(small, letters) -> None:
    predictions = _all(small, lambda task, gold: _answered(task.key, "True"))
    metrics = _score(small, predictions, letters).metrics
    two = metrics.by_group["true_false"]["published"]
    assert (two.value, two.n) == (0.5, 2)
    assert two.interval is not None
    assert metrics.by_group["list"]["published"].interval is None
    assert metrics.measures["published"].interval is None
    assert metrics.measures["published"].n == 8


def test_failed_and_missing_tasks_enter_no_score(small, letters) -> None:
    predictions = _all(small, lambda task, gold: _answered(task.key, _perfect(task, gold)))
    failed, missing = "cliniqlink/true_false/1", "cliniqlink/short/1"
    predictions[failed] = Prediction(
        question=failed, status=Status.FAILED, failure=Failure(kind="E", message="m"), **SAME
    )
    del predictions[missing]
    scores = _score(small, predictions, letters)
    metrics = scores.metrics
    assert (metrics.selected, metrics.n, metrics.failed, metrics.missing) == (8, 6, 1, 1)
    assert (metrics.by_group["true_false"]["published"].value, metrics.by_group["true_false"]["published"].n) == (1, 1)
    assert metrics.by_group["short"]["published"].value is None
    assert metrics.measures["paper"].value is None, "the paper's mean is over all seven formats"
    assert failed not in scores.items["paper"]


def test_a_run_without_answers_has_no_score(small, letters) -> None:
    scores = _score(small, {}, letters)
    assert (scores.metrics.n, scores.metrics.missing, scores.metrics.measures, scores.items) == (0, 8, {}, {})


def test_the_order_of_predictions_changes_nothing(small, letters) -> None:
    predictions = _all(small, lambda task, gold: _answered(task.key, _perfect(task, gold)[::-1]))
    assert _score(small, dict(reversed(predictions.items())), letters) == _score(small, predictions, letters)
