"""What is read out of true/false and multiple choice: the strict reading and the kind one."""

from pathlib import Path

import pytest
from task_data import rows_in

rows = rows_in(Path(__file__).with_name("readings.jsonl"))
"""What is to be read, and what is read out of it."""


@pytest.fixture
def read(score):
    """What one reply to an item scores."""
    return lambda item, reply: score([item], [reply]).formats[item.task.group]


@pytest.mark.parametrize(("text", "other"), rows("equal texts"))
def test_texts_are_equal_but_for_signs_accents_and_spaces(make_item, read, text: str, other: str) -> None:
    item = make_item("multiple_choice", other, [other, "something else"])
    assert read(item, text).score == 1.0


@pytest.mark.parametrize(("reply", "text"), rows("replies"))
def test_reply_texts(make_item, read, reply: str, text: str) -> None:
    item = make_item("multiple_choice", "x", ["x", "y"])
    assert vars(read(item, reply)) == vars(read(item, text))
    told = make_item("multiple_choice", text or "nothing", [text or "nothing", "other words"])
    assert read(told, reply).score == float(bool(text))


@pytest.mark.parametrize(("text", "said", "trailing", "forgiven"), rows("verdicts"))
def test_verdicts(make_item, read, text: str, said: str | None, trailing: bool, forgiven: bool | None) -> None:
    yes, no = (read(make_item("true_false", gold), text) for gold in (" True ", "false"))
    assert (yes.score, no.score) == (float(said == "true"), float(said == "false"))
    assert (yes.forgiving, no.forgiving) == (float(forgiven is True), float(forgiven is False))
    assert yes.malformed.get("trailing text", 0) == trailing
    assert yes.malformed.get("no verdict", 0) + yes.malformed.get("empty", 0) >= (said is None)


OPTIONS = ["10% - 40%", "Gestational Age", "Chest X-ray", "Type of study (ordered)"]


@pytest.mark.parametrize(("gold", "text", "match", "forgiven"), rows("choices"))
def test_choices(make_item, read, gold: str, text: str, match: str, forgiven: bool) -> None:
    found = read(make_item("multiple_choice", gold, OPTIONS), text)
    assert (found.matches, found.score) == ({match: 1}, float(match == "full"))
    assert found.forgiving == float(forgiven)


def test_a_gold_letter_stands_for_its_option_even_where_an_option_is_that_letter(make_item, read) -> None:
    assert read(make_item("multiple_choice", "B", ["B", "A"]), "A").score == 1.0
    assert read(make_item("multiple_choice", "[", [str(n) for n in range(30)]), "26").score == 1.0


def test_an_echo_is_the_question_but_for_capitals_and_spaces(make_item, read) -> None:
    item = make_item("short", "A bone.", question="What is it?")
    for reply, echo in ((" what is IT? ", 1), ("what is it", 0)):
        assert read(item, reply).malformed.get("echo", 0) == echo
