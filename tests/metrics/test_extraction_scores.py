"""Scores of extracted parts of a text, against values that are counted by hand."""

import random

import pytest

from medexam.metrics import score_extraction
from medexam.metrics.extraction import WITHOUT_REPEATS
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
    ("said", "f1", "exact"),
    [
        ("He has no fever.", 1.0, 1.0),
        ("has no fever", 2 * (3 / 3) * (3 / 4) / (3 / 3 + 3 / 4), 0.0),
        ("He has no fever. So a cold", 2 * (4 / 6) * (4 / 4) / (4 / 6 + 4 / 4), 0.0),
        ("Asthma wheezes.", 0.0, 0.0),
    ],
)
def test_right_answers_are_scored_by_squads_rule(said, f1, exact) -> None:
    """Words of the last but one without the article: He, has, no, fever, So, cold."""
    task = _task("a")
    scores = score_extraction([task], {"a": TaskGold(answers=("He has no fever",))}, {"a": _said(task, said)})
    assert scores.items["f1"]["a"] == pytest.approx(f1)
    assert scores.items["exact_match"]["a"] == exact
    assert scores.metrics.measures["f1"].value == pytest.approx(f1)
    precision, recall = (scores.items[name]["a"] for name in ("precision", "recall"))
    assert 2 * precision * recall == pytest.approx(f1 * (precision + recall))
    assert list(scores.metrics.measures) == [
        "f1",
        "exact_match",
        "f1_spanish",
        "exact_match_spanish",
        "precision",
        "recall",
        "quoted",
        "literal",
    ]


def test_the_spanish_rule_stands_apart() -> None:
    task = _task("a", context="La hepatitis A es vírica.")
    gold = {"a": TaskGold(answers=("hepatitis A",))}
    found = score_extraction([task], gold, {"a": _said(task, "hepatitis")}).items
    assert (found["exact_match"]["a"], found["exact_match_spanish"]["a"]) == (1.0, 0.0)
    assert found["f1_spanish"]["a"] == pytest.approx(2 / 3)


def test_the_best_of_several_wordings_counts() -> None:
    task = _task("a")
    gold = {"a": TaskGold(answers=("a cold is likely", "no fever"))}
    assert score_extraction([task], gold, {"a": _said(task, "no fever")}).items["f1"]["a"] == 1.0


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


def test_component_f1_agrees_with_a_count_of_characters_marked_by_hand() -> None:
    """An independent count: each word is marked by its first character."""
    draw = random.Random(7)
    for _ in range(50):
        words = [draw.choice(["fever", "cold", "no", "he"]) for _ in range(draw.randint(4, 12))]
        context = " ".join(words)
        starts = [sum(len(word) + 1 for word in words[:place]) for place in range(len(words))]
        ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
        a, b = sorted(draw.sample(range(len(words)), 2))
        c, d = sorted(draw.sample(range(len(words)), 2))
        task = _task("t/CQ#E", "CQ#E", context)
        span = (starts[c], ends[d])
        said = Prediction(
            question=task.key,
            status=Status.ANSWERED,
            text=context[slice(*span)],
            span=span,
            alignment="literal",
            **SAME,
        )
        gold = TaskGold(components=(Component("claim", starts[a], ends[b]),))
        wanted, chosen = set(range(a, b + 1)), set(range(c, d + 1))
        expected = 2 * len(wanted & chosen) / (len(wanted) + len(chosen))
        found = score_extraction([task], {task.key: gold}, {task.key: said}).items["component_f1"][task.key]
        assert found == pytest.approx(expected)


def test_an_unanswered_task_scores_0_and_is_counted() -> None:
    tasks = [_task("a"), _task("b")]
    golds = {key: TaskGold(answers=("no fever",)) for key in "ab"}
    predictions = {"a": _said(tasks[0], "no fever", "aligned"), "b": _nothing("b")}
    metrics = score_extraction(tasks, golds, predictions).metrics
    assert (metrics.n, metrics.unanswered, metrics.complete) == (2, 1, True)
    values = {name: measure.value for name, measure in metrics.measures.items()}
    assert values == {
        "f1": 0.5,
        "exact_match": 0.5,
        "f1_spanish": 0.5,
        "exact_match_spanish": 0.5,
        "precision": 0.5,
        "recall": 0.5,
        "quoted": 0.5,
        "literal": 0.0,
    }
    assert metrics.counts == {"given": {"aligned": 1, "not_in_context": 1}}


def test_failed_and_missing_tasks_enter_no_score() -> None:
    tasks = [_task(key) for key in "abc"]
    golds = {key: TaskGold(answers=("no fever",)) for key in "abc"}
    failed = Prediction(question="b", status=Status.FAILED, failure=Failure(kind="E", message="m"), **SAME)
    metrics = score_extraction(tasks, golds, {"a": _said(tasks[0], "no fever"), "b": failed}).metrics
    assert (metrics.selected, metrics.n, metrics.failed, metrics.missing) == (3, 1, 1, 1)
    assert (metrics.measures["f1"].value, metrics.measures["f1"].n) == (1.0, 1)
    assert metrics.counts == {"given": {"literal": 1}}


def test_a_run_without_answers_has_no_score() -> None:
    task = _task("a")
    scores = score_extraction([task], {"a": TaskGold(answers=("x",))}, {})
    assert (scores.metrics.n, scores.metrics.missing, scores.metrics.measures, scores.items) == (0, 1, {}, {})


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
    metrics = score_extraction(tasks, golds, predictions).metrics
    assert list(metrics.by_group) == list(variants)
    assert metrics.by_group["CQ#E"]["component_f1"].value == pytest.approx(2 / 3)
    assert metrics.by_group["QP#CE"]["component_f1"].value == 0.0
    assert metrics.by_subset[WITHOUT_REPEATS]["component_f1"].n == 4
    assert metrics.by_subset[WITHOUT_REPEATS]["component_f1"].value == pytest.approx(1 / 4)
    assert metrics.measures["component_f1"].resampled == "none: too few questions"
    assert metrics.counts == {"CQ#E": {"literal": 2, "not_in_context": 1}, "QP#CE": {"not_in_context": 3}}


def test_order_and_repetition_change_nothing() -> None:
    tasks = [_task(f"casimedicos/test/{n}/CQ#E", "CQ#E") for n in range(5)]
    golds = {task.key: TaskGold(components=(_component("no fever"),)) for task in tasks}
    predictions = {task.key: _said(task, text) for task, text in zip(tasks, CONTEXT.split()[:5], strict=True)}
    first = score_extraction(tasks, golds, predictions)
    assert score_extraction(tasks, golds, dict(reversed(predictions.items()))) == first
