"""Scores of extracted parts of a text, against values that are counted by hand."""

import pytest

from medexam.measures import SpanBenchmark, find_benchmark
from medexam.predictions import Failure, Prediction, Reason, Status
from medexam.questions import Task, TaskGold
from medexam.specs import DatasetSpec
from task_sets import SAME, make_nothing, make_span, make_task, score_tasks


@pytest.mark.parametrize(
    ("said", "precision", "recall", "exact"),
    [
        ("He has no fever.", 1, 1, 1.0),
        ("has no fever", 3 / 3, 3 / 4, 0.0),
        # The article is no word.
        ("He has no fever. So a cold", 4 / 6, 4 / 4, 0.0),
        ("Asthma wheezes.", 0, 0, 0.0),
    ],
)
def test_right_answers_are_scored_by_squads_rule(said, precision, recall, exact) -> None:
    task = make_task("a")
    gold = TaskGold(answers=("He has no fever", "a kidney"))
    scores = score_tasks(SpanBenchmark, [task], {"a": gold}, {"a": make_span(task, said)})
    f1 = 2 * precision * recall / (precision + recall) if precision else 0.0
    assert {name: items["a"] for name, items in scores.items.items()} == {
        "f1": pytest.approx(f1),
        "exact_match": exact,
        "f1_spanish": scores.items["f1_spanish"]["a"],
        "exact_match_spanish": exact,
        "precision": pytest.approx(precision),
        "recall": pytest.approx(recall),
        "quoted": 1.0,
        "literal": 1.0,
    }
    assert scores.metrics.measures["f1"].value == pytest.approx(f1)


def test_the_spanish_rule_stands_apart() -> None:
    task = make_task("a", context="La hepatitis A es vírica.")
    gold = {"a": TaskGold(answers=("hepatitis A",))}
    found = score_tasks(SpanBenchmark, [task], gold, {"a": make_span(task, "hepatitis")}).items
    assert (found["exact_match"]["a"], found["exact_match_spanish"]["a"]) == (1.0, 0.0)
    assert found["f1_spanish"]["a"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(("language", "measures"), [("en", 2), ("es", 4)])
def test_short_answers_have_the_spanish_rule_beside_in_spanish(language, measures) -> None:
    tasks = [Task(key, "all", language, "Which?") for key in "ab"]
    golds = {key: TaskGold(answers=("insulin", "metformin")) for key in "ab"}
    said = {
        "a": Prediction(question="a", status=Status.ANSWERED, text="the metformin", **SAME),
        "b": Prediction(question="b", status=Status.UNANSWERED, reason=Reason.UNPARSED, **SAME),
    }
    spec = DatasetSpec(kind="short_answer", path="none.jsonl")
    scores = score_tasks(type(find_benchmark(spec)), tasks, golds, said)
    names = ["f1", "exact_match", "f1_spanish", "exact_match_spanish"]
    assert list(scores.items) == names[:measures]
    assert (scores.items["f1"], scores.items["exact_match"]) == ({"a": 1.0, "b": 0.0},) * 2
    assert (scores.metrics.unanswered, scores.metrics.measures["f1"].value) == (1, 0.5)


def test_an_unanswered_task_scores_0_and_failed_and_missing_ones_enter_no_score() -> None:
    tasks = [make_task(key) for key in "abcd"]
    golds = {key: TaskGold(answers=("no fever",)) for key in "abcd"}
    failed = Prediction(question="c", status=Status.FAILED, failure=Failure(kind="E", message="m"), **SAME)
    predictions = {"a": make_span(tasks[0], "no fever", "aligned"), "b": make_nothing("b"), "c": failed}
    metrics = score_tasks(SpanBenchmark, tasks, golds, predictions).metrics
    assert (metrics.selected, metrics.n, metrics.unanswered, metrics.failed, metrics.missing) == (4, 2, 1, 1, 1)
    values = {name: (measure.value, measure.n) for name, measure in metrics.measures.items()}
    assert values.pop("literal") == (0.0, 2)
    assert set(values.values()) == {(0.5, 2)}
    assert metrics.tallies["Answers"] == {"given": {"aligned": 1, "not_in_context": 1}}
    nothing = score_tasks(SpanBenchmark, tasks, golds, {})
    assert (nothing.metrics.n, nothing.metrics.missing, nothing.metrics.measures, nothing.items) == (0, 4, {}, {})
