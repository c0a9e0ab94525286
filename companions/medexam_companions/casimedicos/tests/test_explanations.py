"""Scores of extracted explanations: argument components, what became of spans, groups; counted by hand."""

import pytest

from medexam.predictions import Prediction, Reason, Status
from medexam.questions import Component, TaskGold
from medexam_companions.casimedicos import Explanations
from task_sets import CONTEXT, SAME, make_nothing, make_span, make_task, score_tasks


def _component(text: str, label: str = "premise", context: str = CONTEXT) -> Component:
    start = context.index(text)
    return Component(label, start, start + len(text))


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
    task = make_task("t/CQ#E", "CQ#E")
    gold = TaskGold(components=(_component("He has no fever."), _component("is likely", "claim")))
    items = score_tasks(Explanations, [task], {task.key: gold}, {task.key: make_span(task, said)}).items
    precision, recall = both / said_words, both / 6
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    found = [items[f"component_{name}"][task.key] for name in ("precision", "recall", "f1")]
    assert found == pytest.approx([precision, recall, f1])
    assert "f1" not in items


def test_groups_and_questions_that_do_not_repeat_train() -> None:
    variants = ("CQ#E", "QP#CE")
    tasks = [make_task(f"casimedicos/test/{number}/{name}", name) for number in range(3) for name in variants]
    golds = {
        task.key: TaskGold(components=(_component("no fever"),), repeats_training="/0/" in task.key) for task in tasks
    }
    predictions = {
        task.key: make_span(task, "no fever")
        if task.group == "CQ#E" and "/2/" not in task.key
        else make_nothing(task.key)
        for task in tasks
    }
    metrics = score_tasks(Explanations, tasks, golds, dict(reversed(predictions.items()))).metrics
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
    task = make_task("q", context="the fever rules asthma out")
    status = {"status": Status.ANSWERED} if said else {"status": Status.UNANSWERED, "reason": Reason.UNPARSED}
    prediction = Prediction(question="q", text=said or None, **status, **SAME)
    gold = TaskGold(answers=("cough", task.context))
    kinds = dict.fromkeys(("exact", "empty", "incomplete", "partial", "too long", "elsewhere"), 0)
    found = score_tasks(Explanations, [task], {"q": gold}, {"q": prediction}).metrics.tallies["Extracted spans"]
    assert found == {"given": kinds | {kind: 1}}
