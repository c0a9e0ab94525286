"""Every predicted span is of one kind, and the kinds agree with exact match and F1."""

import random

import pytest

from medexam.benchmarks.words.tables import outcome_tables
from medexam.metrics import score_extraction, score_span
from medexam.metrics.span_outcomes import SpanOutcome, count_outcomes, judge_span
from medexam.predictions import Prediction, Reason, Status
from medexam.questions import Task, TaskGold

GOLD = "the fever rules asthma out"


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("The fever rules asthma out.", SpanOutcome.EXACT),
        ("", SpanOutcome.EMPTY),
        ("...", SpanOutcome.EMPTY),
        ("rules asthma", SpanOutcome.INCOMPLETE),
        ("no fever at all", SpanOutcome.INCOMPLETE),
        ("here the fever rules asthma out at once", SpanOutcome.TOO_LONG),
        ("a cough", SpanOutcome.ELSEWHERE),
    ],
)
def test_kinds(said, outcome) -> None:
    assert judge_span(said, [GOLD]) is outcome


def test_the_nearest_reference_counts() -> None:
    assert judge_span("rules asthma", [GOLD, "rules asthma"]) is SpanOutcome.EXACT
    assert judge_span("fever", ["cough", GOLD]) is SpanOutcome.INCOMPLETE


def test_kinds_agree_with_the_scores() -> None:
    draw = random.Random(3)
    words = ["fever", "cough", "asthma", "lung", "no"]
    pairs = [
        (" ".join(draw.choices(words, k=draw.randint(0, 4))), [" ".join(draw.choices(words, k=draw.randint(1, 4)))])
        for _ in range(500)
    ]
    for said, references in pairs:
        scores, outcome = score_span(said, references), judge_span(said, references)
        assert (scores.exact_match == 1) is (outcome is SpanOutcome.EXACT)
        assert (scores.f1 == 0) is (outcome in {SpanOutcome.EMPTY, SpanOutcome.ELSEWHERE})
    assert sum(count_outcomes(pairs).values()) == 500


def test_a_run_counts_them_by_variant() -> None:
    tasks = [
        Task(f"q/{n}/{variant}", variant, "en", "?", context=GOLD) for n in range(3) for variant in ("CQ#E", "Q#CE")
    ]
    golds = {task.key: TaskGold(answers=(GOLD,)) for task in tasks}
    same = {"program": "p", "spec_digest": "d"}
    predictions = {
        task.key: Prediction(question=task.key, status=Status.ANSWERED, text=text, **same)
        if (text := (GOLD, "fever", "")["012".index(task.key[2])])
        else Prediction(question=task.key, status=Status.UNANSWERED, reason=Reason.UNPARSED, **same)
        for task in tasks
    }
    metrics = score_extraction(tasks, golds, predictions).metrics
    for variant in ("CQ#E", "Q#CE"):
        assert metrics.outcomes[variant] == {"exact": 1, "empty": 1, "incomplete": 1, "too long": 0, "elsewhere": 0}
        assert metrics.by_group[variant]["exact_match"].value == pytest.approx(1 / 3)
    (table,) = outcome_tables(metrics)
    assert table.headers[:5] == ("Variant", "n", "Exact", "Empty", "Incomplete")
    assert table.rows[0][:5] == ("CQ#E", "3", "1", "1", "1")
