"""Metrics of option scores against hand-computed values, and against numpy and scikit-learn."""

import math

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from evidence_figures import figures
from medexam.measures import Metrics, compute_metrics
from medexam.predictions import Failure, Prediction, Reason, Status
from medexam.questions import AnswerKey, Gold, Scoring


def _logs(probabilities) -> dict[int, float]:
    """Option scores that the softmax turns back into `probabilities`, whatever is added to all of them."""
    return {number: math.log(p) - 7.0 for number, p in enumerate(probabilities, start=1)}


def _scored(question, scores, **fields) -> Prediction:
    """An answered prediction, unless `fields` say otherwise."""
    outcome = {"status": Status.ANSWERED, "answer": max(scores, key=scores.__getitem__)}
    return Prediction(question=question.key, program="p", spec_digest="d", option_scores=scores, **outcome | fields)


@pytest.fixture
def judge(make_exam):
    """`judge([(probabilities, gold, fields), ...])` -> its figures; one question each, of that many options."""

    def make(cases):
        questions, golds, predictions = [], {}, {}
        for position, (scores, gold, fields) in enumerate(cases):
            (question,) = make_exam("biology", 2013, size=1, options=len(scores), name=f"exam-{position}")
            questions.append(question)
            golds[question.key] = Gold(number=gold)
            given = scores if isinstance(scores, dict) else _logs(scores)
            predictions[question.key] = _scored(question, given, **fields)
        return figures(compute_metrics(questions, AnswerKey(golds), predictions, Scoring()), "option_scores")

    return make


def test_who_abstained_is_judged_by_the_likeliest_option(judge) -> None:
    blank = {"status": Status.UNANSWERED, "reason": Reason.ABSTAINED, "answer": None}
    found = judge([([0.2, 0.5, 0.3], 2, blank), ([0.2, 0.5, 0.3], 3, blank)])
    assert found.n == 2
    assert [part.accuracy for part in found.reliability if part.n] == [0.5]


def test_failed_and_other_questions_are_left_out(make_exam, key_of) -> None:
    questions = make_exam("biology", 2013, size=4, options=2)
    lost = {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message="gone"), "answer": None}
    predictions = {
        questions[0].key: _scored(questions[0], _logs([0.8, 0.2])),
        questions[1].key: _scored(questions[1], _logs([0.8, 0.2]), **lost),
        questions[3].key: _scored(questions[3], _logs([0.2, 0.8])),
    }
    found = figures(compute_metrics(questions[:3], key_of(questions), predictions), "option_scores")
    assert found.n == 1
    assert [part.accuracy for part in found.reliability if part.n] == [1.0]


def test_ties_and_label_mass(judge) -> None:
    even = {1: -1.0, 2: -1.0, 3: -4.0}
    mass = {"label_mass": 0.5}, {"label_mass": 0.9}
    found = judge(
        [(even, 1, {"tied": 2, **mass[0]}), (even, 2, mass[1]), (even, 3, {"tied": 1}), ([0.6, 0.4], 1, {"tied": 1})]
    )
    assert (found.tied, found.label_mass) == (2, 0.7)
    assert judge([(even, 1, {})]).label_mass is None


def test_positions_by_printed_number(judge) -> None:
    found = judge([([0.5, 0.3, 0.2], 3, {}), ([0.1, 0.9], 2, {})])
    assert not found.by_shown_position
    assert found.flip_rate is None
    assert [(share.position, share.n) for share in found.positions] == [(1, 2), (2, 2), (3, 1)]
    assert [share.mean_probability for share in found.positions] == pytest.approx([0.3, 0.6, 0.2])
    assert [share.chosen for share in found.positions] == [0.5, 0.5, 0.0]
    assert [share.gold for share in found.positions] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("rows", "places", "flip_rate"),
    [
        # The first place is preferred whatever stands there.
        (((0.6, 0.3, 0.1),) * 3, [0.6, 0.3, 0.1], 1.0),
        # Option 2 is preferred wherever it stands: at places 2, 1 and 3 of the orders that begin with 1, 2 and 3.
        (((0.1, 0.8, 0.1), (0.8, 0.1, 0.1), (0.1, 0.1, 0.8)), [1 / 3] * 3, 0.0),
    ],
)
def test_orders_tell_a_preferred_place_from_a_preferred_option(judge, rows, places, flip_rate) -> None:
    logs = tuple(tuple(math.log(p) for p in row) for row in rows)
    found = judge([([1 / 3] * 3, 2, {"order_scores": logs})])
    assert found.by_shown_position
    assert [share.mean_probability for share in found.positions] == pytest.approx(places)
    assert [share.gold for share in found.positions] == pytest.approx([1 / 3] * 3)
    assert found.flip_rate == flip_rate
    mixed = judge([([1 / 3] * 3, 2, {"order_scores": logs}), ([0.6, 0.4], 1, {})])
    assert (mixed.flip_rate, mixed.by_shown_position) == (flip_rate, False)


@pytest.fixture
def crowd(make_exam):
    """Four hundred questions of four and five options with random scores, three in five with a likely gold."""
    draw = np.random.default_rng(7)
    questions = make_exam("biology", 2013, size=200, options=5) + make_exam("nursing", 2014, size=200, options=4)
    golds, predictions = {}, {}
    for question in questions:
        numbers = question.option_numbers
        scores = draw.normal(scale=1.2, size=len(numbers))
        gold = int(draw.integers(len(numbers)))
        scores[gold] += 1.5 * (draw.random() < 0.6)
        orders = tuple(tuple(np.roll(scores, -first) + draw.normal(size=len(numbers))) for first in range(len(numbers)))
        golds[question.key] = Gold(number=numbers[gold])
        predictions[question.key] = _scored(
            question, dict(zip(numbers, scores.tolist(), strict=True)), order_scores=orders, label_mass=draw.random()
        )
    return questions, AnswerKey(golds), predictions


def _softmax(rows):
    weights = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def test_a_second_implementation_agrees(crowd) -> None:
    questions, key, predictions = crowd
    metrics = compute_metrics(questions, key, predictions, Scoring())
    found = figures(metrics, "option_scores")
    padded = np.full((len(questions), 5), -np.inf)
    for row, question in enumerate(questions):
        scores = list(predictions[question.key].option_scores.values())
        padded[row, : len(scores)] = scores
    probabilities = _softmax(padded)
    golds = np.array([key[question.key].number - 1 for question in questions])
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == golds

    assert found.brier_score == pytest.approx(
        brier_score_loss(golds, probabilities, labels=range(5), scale_by_half=False)
    )
    accuracy, mean_confidence = calibration_curve(right, confidence, n_bins=10)
    full = [part for part in found.reliability if part.n]
    assert [part.accuracy for part in full] == pytest.approx(accuracy)
    assert [part.mean_confidence for part in full] == pytest.approx(mean_confidence)
    weights = np.histogram(confidence, bins=10, range=(0, 1))[0]
    assert [part.n for part in found.reliability] == weights.tolist()
    error = np.average(np.abs(accuracy - mean_confidence), weights=weights[weights > 0])
    assert found.expected_calibration_error == pytest.approx(error)

    assert Metrics.model_validate_json(metrics.model_dump_json()) == metrics


def test_a_second_implementation_agrees_on_orders(crowd) -> None:
    questions, key, predictions = crowd
    found = figures(compute_metrics(questions, key, predictions), "option_scores")
    tables = [_softmax(np.array(predictions[question.key].order_scores)) for question in questions]
    flips = []
    for table in tables:
        k = len(table)
        exam_places = np.stack([np.roll(table[first], first) for first in range(k)])
        flips.append(len(set(exam_places.argmax(axis=1))) > 1)
    assert found.flip_rate == pytest.approx(np.mean(flips))
    assert found.by_shown_position
    for share in found.positions:
        having = [table for table in tables if len(table) >= share.position]
        assert share.n == len(having)
        at = share.position - 1
        assert share.mean_probability == pytest.approx(np.mean([table[:, at].mean() for table in having]))
        assert share.chosen == pytest.approx(np.mean([(table.argmax(axis=1) == at).mean() for table in having]))
        assert share.gold == pytest.approx(np.mean([1 / len(table) for table in having]))
