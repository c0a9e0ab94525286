"""Scores of extracted parts of a text, against values that are counted by hand."""

import pytest

from medexam.measures import score_extraction, score_short_answers
from medexam.predictions import Failure, Prediction, Reason, Status
from medexam.questions import Component, Task, TaskGold

CONTEXT = "Asthma wheezes. He has no fever. So a cold is likely."
SAME = {"program": "extract_explanation", "spec_digest": "d"}


def _task(key: str, group: str = "given", context: str = CONTEXT) -> Task:
    return Task(key, group, "en", "Why?", context=context)


def _said(task: Task, text: str, alignment: str = "literal") -> Prediction:
    start = task.context.index(text)
    span = (start, start + len(text))
    return Prediction(question=task.key, status=Status.ANSWERED, text=text, span=span, alignment=alignment, **SAME)


def _nothing(key: str) -> Prediction:
    return Prediction(question=key, status=Status.UNANSWERED, reason=Reason.NOT_IN_CONTEXT, **SAME)


def _component(text: str, label: str = "premise", context: str = CONTEXT) -> Component:
    start = context.index(text)
    return Component(label, start, start + len(text))


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
    task = _task("a")
    gold = TaskGold(answers=("He has no fever", "a kidney"))
    scores = score_extraction([task], {"a": gold}, {"a": _said(task, said)})
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
    task = _task("a", context="La hepatitis A es vírica.")
    gold = {"a": TaskGold(answers=("hepatitis A",))}
    found = score_extraction([task], gold, {"a": _said(task, "hepatitis")}).items
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
    scores = score_short_answers(tasks, golds, said)
    names = ["f1", "exact_match", "f1_spanish", "exact_match_spanish"]
    assert list(scores.items) == names[:measures]
    assert (scores.items["f1"], scores.items["exact_match"]) == ({"a": 1.0, "b": 0.0},) * 2
    assert (scores.metrics.unanswered, scores.metrics.measures["f1"].value) == (1, 0.5)


@pytest.mark.parametrize(
    ("said", "both", "said_words"),
    [
        ("He has no fever.", 4, 4),
        ("has no fever. So a", 3, 5),
        ("Asthma wheezes.", 0, 2),
        (CONTEXT, 6, 11),
        ("cold is likely", 2, 3),
        ("has no fev", 2, 2),
    ],
)
def test_components_are_counted_in_words(said, both, said_words) -> None:
    """Components hold He, has, no, fever and is, likely: six words. `fev` is no whole word of the context."""
    task = _task("t/CQ#E", "CQ#E")
    gold = TaskGold(components=(_component("He has no fever."), _component("is likely", "claim")))
    items = score_extraction([task], {task.key: gold}, {task.key: _said(task, said)}).items
    precision, recall = both / said_words, both / 6
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    found = [items[f"component_{name}"][task.key] for name in ("precision", "recall", "f1")]
    assert found == pytest.approx([precision, recall, f1])
    assert "f1" not in items


def test_an_unanswered_task_scores_0_and_failed_and_missing_ones_enter_no_score() -> None:
    tasks = [_task(key) for key in "abcd"]
    golds = {key: TaskGold(answers=("no fever",)) for key in "abcd"}
    failed = Prediction(question="c", status=Status.FAILED, failure=Failure(kind="E", message="m"), **SAME)
    predictions = {"a": _said(tasks[0], "no fever", "aligned"), "b": _nothing("b"), "c": failed}
    metrics = score_extraction(tasks, golds, predictions).metrics
    assert (metrics.selected, metrics.n, metrics.unanswered, metrics.failed, metrics.missing) == (4, 2, 1, 1, 1)
    values = {name: (measure.value, measure.n) for name, measure in metrics.measures.items()}
    assert values.pop("literal") == (0.0, 2)
    assert set(values.values()) == {(0.5, 2)}
    assert metrics.tallies["Answers"] == {"given": {"aligned": 1, "not_in_context": 1}}
    nothing = score_extraction(tasks, golds, {})
    assert (nothing.metrics.n, nothing.metrics.missing, nothing.metrics.measures, nothing.items) == (0, 4, {}, {})


def test_groups_and_questions_that_do_not_repeat_train() -> None:
    variants = ("CQ#E", "QP#CE")
    tasks = [_task(f"casimedicos/test/{number}/{name}", name) for number in range(3) for name in variants]
    golds = {
        task.key: TaskGold(components=(_component("no fever"),), repeats_training="/0/" in task.key) for task in tasks
    }
    predictions = {
        task.key: _said(task, "no fever") if task.group == "CQ#E" and "/2/" not in task.key else _nothing(task.key)
        for task in tasks
    }
    metrics = score_extraction(tasks, golds, dict(reversed(predictions.items()))).metrics
    assert list(metrics.by["group"]) == list(variants)
    assert metrics.by["group"]["CQ#E"].measures["component_f1"].value == pytest.approx(2 / 3)
    assert metrics.by["group"]["QP#CE"].measures["component_f1"].value == 0.0
    (fresh,) = metrics.by["subset"].values()
    assert (fresh.measures["component_f1"].n, fresh.measures["component_f1"].value) == (4, pytest.approx(1 / 4))
    assert metrics.measures["component_f1"].resampled == "none: too few questions"
    assert metrics.tallies["Answers"] == {"CQ#E": {"literal": 2, "not_in_context": 1}, "QP#CE": {"not_in_context": 3}}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("The fever rules asthma out.", "exact"),
        ("a cough", "exact"),
        ("", "empty"),
        ("...", "empty"),
        ("the", "incomplete"),
        ("some", "incomplete"),
        ("correct)", "incomplete"),
        ("asthma", "incomplete"),
        ("rules asthma", "partial"),
        ("no fever at all", "partial"),
        ("here the fever rules asthma out at once", "too long"),
        ("a lung", "elsewhere"),
    ],
)
def test_every_span_is_of_the_kind_in_which_it_stands_to_the_nearest_right_answer(said, kind) -> None:
    task = _task("q", context="the fever rules asthma out")
    status = {"status": Status.ANSWERED} if said else {"status": Status.UNANSWERED, "reason": Reason.UNPARSED}
    prediction = Prediction(question="q", text=said or None, **status, **SAME)
    gold = TaskGold(answers=("cough", task.context))
    kinds = dict.fromkeys(("exact", "empty", "incomplete", "partial", "too long", "elsewhere"), 0)
    found = score_extraction([task], {"q": gold}, {"q": prediction}).metrics.tallies["Extracted spans"]
    assert found == {"given": kinds | {kind: 1}}
