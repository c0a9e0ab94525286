"""Scores against hand-computed values and a second implementation in numpy."""

import numpy as np
import pytest

from medexam.errors import DatasetError
from medexam.measures import compute_metrics
from medexam.questions import AnswerKey, Scoring


@pytest.mark.parametrize(
    ("outcomes", "accuracy", "exam_score", "points", "unanswered_ratio"),
    [
        ("r", 1.0, 1.0, 30, 0.0),
        ("w", 0.0, -1 / 3, -10, 0.0),
        ("u", 0.0, 0.0, 0, 1.0),
        ("rwww" + "u" * 6, 0.1, 0.0, 0, 0.6),
        ("rrrrrwwwuu", 0.5, 0.4, 12, 0.2),
    ],
)
def test_scores_of_one_exam(score, outcomes, accuracy, exam_score, points, unanswered_ratio) -> None:
    metrics = score((10 * outcomes)[:10])
    assert (metrics.n, metrics.selected, metrics.complete) == (10, 10, True)
    assert metrics.measure("accuracy").value == pytest.approx(accuracy)
    assert metrics.measure("exam_score").value == pytest.approx(exam_score)
    assert metrics.measure("points").value == pytest.approx(points)
    assert metrics.measure("unanswered_ratio").value == pytest.approx(unanswered_ratio)


def test_failed_and_missing_enter_no_score(score) -> None:
    metrics = score("rrwufmffmm")
    assert (metrics.right, metrics.wrong, metrics.unanswered, metrics.failed, metrics.missing) == (2, 1, 1, 3, 3)
    assert (metrics.n, metrics.selected, metrics.complete) == (4, 10, False)
    assert metrics.measure("accuracy").value == 0.5
    assert metrics.measure("exam_score").value == pytest.approx((2 - 1 / 3) / 4)


@pytest.mark.parametrize("outcome", ["f", "m"])
def test_no_scored_question_is_no_score(score, outcome) -> None:
    metrics = score(3 * outcome)
    for name in ("accuracy", "exam_score", "points", "unanswered_ratio", "headqa_v1_accuracy"):
        assert (metrics.measure(name).value, metrics.measure(name).chance) == (None, None)
    assert metrics.measure("accuracy").interval is None
    assert metrics.by["year"]["2013"].measure("accuracy").value is None
    assert metrics.exams == 0


def test_an_empty_selection_is_an_error() -> None:
    with pytest.raises(DatasetError, match="no question is selected"):
        compute_metrics([], AnswerKey({}), {})


def test_a_question_without_gold_is_an_error(make_exam, predict) -> None:
    questions = make_exam("biology", 2013, size=1, options=4)
    with pytest.raises(DatasetError, match="biology-2013/1"):
        compute_metrics(questions, AnswerKey({}), predict(questions, "r"))


def test_predictions_for_other_questions_are_not_looked_at(make_exam, key_of, predict) -> None:
    both = make_exam("biology", 2013, size=4, options=4) + make_exam("medicine", 2013, size=4, options=4)
    metrics = compute_metrics(both[:4], key_of(both), predict(both, "r"))
    assert (metrics.n, metrics.missing) == (4, 0)
    assert list(metrics.by["discipline"]) == ["biology"]


def test_points_are_averaged_over_exams_and_accuracy_is_pooled(make_exam, key_of, predict, board) -> None:
    small, large = make_exam("biology", 2013, size=2, options=5), make_exam("medicine", 2015, size=8, options=4)
    predictions = predict(small, "r") | predict(large, "rwww")
    metrics = compute_metrics(small + large, key_of(small + large), predictions, board)
    assert metrics.measure("accuracy").value == pytest.approx(4 / 10)
    assert metrics.measure("points").value == pytest.approx((6 + 0) / 2)
    assert metrics.measure("exam_score").value == pytest.approx((4 - 6 / 3) / 10)
    assert metrics.by["discipline"]["biology"].measure("points").value == 6
    assert metrics.by["discipline"]["medicine"].measure("points").value == 0
    assert metrics.by["year"]["2015"].measure("accuracy").value == pytest.approx(0.25)
    assert {count: group.n for count, group in metrics.by["option_count"].items()} == {"4": 8, "5": 2}
    assert {name: group.n for name, group in metrics.by["exam"].items()} == {"biology-2013": 2, "medicine-2015": 8}


def test_chance_is_the_expectation_of_a_uniform_choice(make_exam, key_of, predict, board) -> None:
    questions = make_exam("biology", 2013, size=10, options=5) + make_exam("biology", 2015, size=30, options=4)
    metrics = compute_metrics(questions, key_of(questions), predict(questions, "r"), board)
    assert metrics.by["option_count"]["4"].measure("exam_score").chance == pytest.approx(0)
    assert metrics.by["option_count"]["5"].measure("accuracy").chance == pytest.approx(0.2)
    assert metrics.by["option_count"]["5"].measure("exam_score").chance == pytest.approx(0.2 - 0.8 / 3)
    draws = np.random.default_rng(1).random((4000, 40)) < np.repeat([1 / 5, 1 / 4], [10, 30])
    assert metrics.measure("accuracy").chance == pytest.approx(draws.mean(), abs=0.004)
    assert metrics.measure("exam_score").chance == pytest.approx(np.where(draws, 1, -1 / 3).mean(), abs=0.004)
    assert metrics.measure("points").chance == pytest.approx(np.where(draws, 3, -1).sum(axis=1).mean() / 2, abs=0.3)


def test_what_a_data_set_does_not_declare_is_no_measure(make_exam, key_of, predict, board) -> None:
    questions = make_exam("biology", None, size=10, options=4, independent=True)
    predictions = predict(questions, "rw")
    plain = compute_metrics(questions, key_of(questions), predictions)
    assert (list(plain.measures), plain.exams, list(plain.by)) == (
        ["accuracy", "unanswered_ratio"],
        None,
        ["discipline", "option_count"],
    )
    charged = compute_metrics(questions, key_of(questions), predictions, Scoring(penalty=0.25))
    assert charged.measure("exam_score").value == pytest.approx((5 - 5 / 4) / 10)
    assert "points" not in charged.measures


def test_two_exams_of_one_name_stay_two(make_exam, key_of, predict) -> None:
    first = make_exam("biology", 2013, size=2, options=4, name="booklet")
    second = [question.model_copy(update={"key": f"{question.key}b"}) for question in first]
    second = [q.model_copy(update={"exam": q.exam.model_copy(update={"year": 2014})}) for q in second]
    metrics = compute_metrics(first + second, key_of(first + second), predict(first + second, "r"))
    assert list(metrics.by["exam"]) == ["booklet (biology 2013)", "booklet (biology 2014)"]


def test_tokens_and_latency(make_exam, key_of, predict) -> None:
    questions = make_exam("biology", 2013, size=4, options=4)
    predictions = predict(questions[:2], "r", prompt_tokens=10, completion_tokens=2, latency_s=1.0)
    predictions |= predict(questions[2:3], "u", prompt_tokens=30, latency_s=3.0)
    predictions |= predict(questions[3:], "f", latency_s=99.0)
    metrics = compute_metrics(questions, key_of(questions), predictions)
    assert (metrics.prompt_tokens, metrics.completion_tokens) == (50, 4)
    assert metrics.latency_p50_s == 1.0
    assert metrics.latency_p95_s == pytest.approx(np.percentile([1, 1, 3], 95))
    controls = compute_metrics(questions, key_of(questions), predict(questions, "w"))
    assert (controls.prompt_tokens, controls.latency_p50_s) == (None, None)
