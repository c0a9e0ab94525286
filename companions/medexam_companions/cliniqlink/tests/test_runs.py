"""Runs on ClinIQLink by both profiles, and the figures that the released scorer gives for the benchmark's sample."""

import re

import pytest
from task_data import write_cliniqlink

from data_folders import full_data
from medexam.datasets import load_task_set
from medexam.measures import find_benchmark
from medexam.predictions import Failure, Prediction, Reason, Status
from medexam.specs import DatasetSpec
from medexam_companions.cliniqlink import FORMATS, score_cliniqlink
from predicted import predicted

__all__ = ["full_data"]
SAME = {"program": "by_format", "spec_digest": "d"}


@pytest.fixture
def small(tmp_path):
    return load_task_set(DatasetSpec(name="cliniqlink", path=write_cliniqlink(tmp_path / "cliniqlink")))


def _perfect(task, gold) -> str:
    if task.group == "list":
        return ", ".join(gold.answers)
    if task.group == "short_inverse":
        return f"Incorrect Explanation: {gold.incorrect_explanation}"
    if task.group == "multi_hop_inverse":
        step = re.search(r"[Ss]tep (\d+)", " ".join(gold.incorrect_step))[1]
        line = next(line for line in gold.incorrect_step if "explanation" in line.lower())
        said = line.partition(":")[2].strip() or line
        return f"Incorrect Reasoning Step: {step}\nIncorrect Reasoning Explanation: {said}"
    return gold.answers[0]


def _answered(key: str, reply: str, text: str | None = None) -> Prediction:
    return predicted(question=key, status=Status.ANSWERED, text=text or reply, reply=reply, **SAME)


def _all(data, reply=_perfect) -> dict[str, Prediction]:
    return {task.key: _answered(task.key, reply(task, data.golds[task.key])) for task in data.questions}


def _score(data, predictions, encoder):
    return score_cliniqlink(data.questions, data.golds, predictions, encoder=encoder, references=data.references)


def _values(measures) -> dict[str, float]:
    return {name: measures[name].value for name in ("published", "paper")}


def test_intervals_belong_to_means_over_items_alone(small, letters) -> None:
    metrics = _score(small, _all(small, lambda *_: "True"), letters).metrics
    two = metrics.by["group"]["true_false"].measures["published"]
    assert (two.value, two.n) == (0.5, 2)
    assert two.interval is not None
    assert metrics.by["group"]["list"].measures["published"].interval is None
    assert (metrics.measures["published"].interval, metrics.measures["published"].n) == (None, 8)


def test_failed_and_missing_tasks_enter_no_score(small, letters) -> None:
    predictions = _all(small)
    failed, missing = "cliniqlink/true_false/1", "cliniqlink/short/1"
    failure = Failure(kind="E", message="m")
    predictions[failed] = predicted(question=failed, status=Status.FAILED, failure=failure, **SAME)
    del predictions[missing]
    scores = _score(small, predictions, letters)
    metrics = scores.metrics
    assert (metrics.selected, metrics.n, metrics.failed, metrics.missing) == (8, 6, 1, 1)
    verdicts = metrics.by["group"]["true_false"].measures["published"]
    assert (verdicts.value, verdicts.n) == (1, 1)
    assert metrics.by["group"]["short"].measures["published"].value is None
    assert metrics.measures["paper"].value is None, "the paper's mean is over all seven formats"
    assert failed not in scores.items["paper"]
    nothing = _score(small, {}, letters)
    assert (nothing.metrics.n, nothing.metrics.missing, nothing.metrics.measures, nothing.items) == (0, 8, {}, {})


@pytest.mark.data
@pytest.mark.model
class TestTheSample:
    """The benchmark's own sample of 35 tasks, scored with the real MiniLM."""

    @pytest.fixture
    def sample(self, full_data):
        pytest.importorskip("sentence_transformers")
        return load_task_set(DatasetSpec(name="cliniqlink"))

    @pytest.fixture
    def score(self, sample):
        benchmark = find_benchmark(DatasetSpec(name=sample.name))
        return lambda predictions: benchmark.score(sample, predictions)

    def test_perfect_and_empty_answers(self, sample, score) -> None:
        found = score(_all(sample))
        metrics = found.metrics
        assert (metrics.n, metrics.complete, tuple(metrics.by["group"])) == (35, True, FORMATS)
        for kind, scores in metrics.by["group"].items():
            measures = scores.measures
            assert _values(measures) == pytest.approx({"published": 1, "paper": 1}, abs=1e-6), kind
            assert measures["published"].n == 5
        assert _values(metrics.measures) == pytest.approx({"published": 1, "paper": 1}, abs=1e-6)
        assert set(found.items["paper"]) == set(sample.golds)
        empty = {"status": Status.UNANSWERED, "reason": Reason.UNPARSED, "reply": ""}
        nothing = {task.key: predicted(question=task.key, **empty, **SAME) for task in sample.questions}
        metrics = score(nothing).metrics
        assert (metrics.n, metrics.unanswered) == (35, 35)
        for measures in (*(scores.measures for scores in metrics.by["group"].values()), metrics.measures):
            assert _values(measures) == {"published": 0, "paper": 0}

    @pytest.fixture
    def worked(self, sample, score):
        """The published score of one reply, as the released scorer gives it to 1e-4 on a CPU."""

        def call(kind: str, number: int, reply: str, profile: str = "published") -> float:
            key = f"cliniqlink/{kind}/{number}"
            return score({key: _answered(key, reply)}).metrics.by["group"][kind].measures[profile].value

        return call

    def test_worked_values_of_short_and_long_answers(self, worked, sample) -> None:
        for reply, expected in (
            ("Benign prostatic hyperplasia.", 1.0),
            ("Benign prostatic hyperplasia", 0.7447),
            ("Final Answer: Benign prostatic hyperplasia.", 0.6732),
            ("It is not benign prostatic hyperplasia.", 0.75),
            ("What condition is treated by blocking 5\u03b1-reductase?", 0.0),
        ):
            assert worked("short", 3, reply) == pytest.approx(expected, abs=1e-4), reply
        alone = f"Final Answer: {sample.golds['cliniqlink/multi_hop/2'].answers[0]}"
        assert worked("multi_hop", 2, alone) == pytest.approx(0.7281, abs=1e-4)

    @pytest.mark.parametrize(
        ("number", "step", "expected", "profile"),
        [(1, 3, 1.0, "published"), (2, 4, 1.0, "paper"), (5, 5, 0.4286, "published"), (5, 5, 0.4286, "paper")],
    )
    def test_worked_values_of_the_explanation_of_a_step(
        self, worked, sample, number: int, step: int, expected: float, profile: str
    ) -> None:
        intended = sample.golds[f"cliniqlink/multi_hop_inverse/{number}"].incorrect_step[1].split(":", 1)[1].strip()
        text = f"Incorrect Reasoning Step: {step}\nIncorrect Reasoning Explanation: {intended}"
        exact = profile == "published" or expected == 1.0
        found = worked("multi_hop_inverse", number, text, profile)
        assert found == pytest.approx(expected, abs=1e-4 if exact else 0.02)
