"""A run whose replies lack the format is scored strictly or leniently and shows both; nothing is asked anew."""

import json

import pytest

import medexam
from medexam.predictions import Status


@pytest.fixture
def document(spec, replies):
    return spec | {"model": replies({"## hint ##": "[[ ## hint ## ]]\nNone.", "*": "The correct answer is (B)."})}


def test_both_readings_stand_where_the_score_stands_and_either_is_the_score(ask, document, asked) -> None:
    (run,) = ask(document)
    assert (run.metrics.right, run.metrics.unanswered) == (0, 12)
    assert {one.lenient for one in run.predictions.values()} == {2}
    readings = run.metrics.readings
    strict, lenient = readings["strict"], readings["lenient"]
    assert (strict.right, strict.wrong, strict.unanswered) == (0, 0, 12)
    assert (lenient.right + lenient.wrong, lenient.unanswered) == (12, 0)
    golds = medexam.load_questions("headqa_sample", limit=12).answers
    assert lenient.right == sum(gold == 2 for gold in golds.values()) == 12 * lenient.measure("accuracy").value
    assert json.loads((run.folder / "metrics.json").read_text())["readings"]["lenient"]["right"] == lenient.right
    share = f"read leniently {100 * lenient.right / 12:.1f} %"
    assert share in (run.folder / "report.md").read_text()

    asked.take()
    (read,) = ask(document, program__reading="lenient")
    assert (asked.prompts, read.id, read.metrics.right) == ([], run.id, lenient.right)
    assert (read.metrics.unanswered, read.metrics.readings) == (0, readings)
    assert {one.status for one in read.predictions.values()} == {Status.ANSWERED}
    (again,) = ask(document)
    assert (asked.prompts, again.metrics) == ([], run.metrics)


def test_runs_are_compared_under_either_reading(ask, document) -> None:
    one, other = ask(document, program=["zero_shot", "chain_of_thought"])

    def rights(**options):
        return [run["metrics"]["right"] for run in medexam.compare(one, other, **options).document()["runs"]]

    lenient = [run.metrics.readings["lenient"].right for run in (one, other)]
    assert (rights(), rights(reading="strict"), rights(reading="lenient")) == ([0, 0], [0, 0], lenient)
    together = medexam.compare(one, other, ensemble="vote", reading="lenient").document()["ensemble"]
    assert together["metrics"]["right"] >= lenient[0] > 0, "of two votes the first counts"


STEPS = [{"ask": "question -> hint"}, {"use": "zero_shot"}]


@pytest.mark.parametrize(
    "settings",
    [
        {"program__samples": 3, "model__temperature": 1.0},
        {"program__orders": "reversed"},
        {"program": {"name": "hinted", "steps": STEPS}},
    ],
)
def test_several_replies_vote_under_either_reading(ask, document, settings) -> None:
    (run,) = ask(document, **settings)
    found = {(one.answer, one.lenient) for one in run.predictions.values()}
    assert found == {(None, 2)}, "an order's own numbers are read in the order shown, and the first one counts"
