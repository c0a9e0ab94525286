"""An answer in any of the ways in which a module may write it means one option, or none."""

from enum import Enum

import pytest

from medexam.questions import Option
from medexam.signatures import read_choice
from table_cases import read_cases


@pytest.mark.parametrize("case", read_cases("choices"))
def test_an_answer_means_an_option(case, question) -> None:
    """An option whose text is a letter or a number is meant by its text, or not at all."""
    if "options" in case:
        options = tuple(Option(number, text) for number, text in enumerate(case["options"], start=1))
        question = question.model_copy(update={"options": options})
    assert read_choice(case["answer"], question) == case["option"]


def test_options_keep_their_printed_numbers(question) -> None:
    printed = question.model_copy(update={"options": (Option(2, "a"), Option(7, "same"), Option(9, "same"))})
    expected = {"A": 2, "B": 7, 7: 7, "7": 7, "same": None, "D": None, 1: None}
    assert {answer: read_choice(answer, printed) for answer in expected} == expected
    assert read_choice(Enum("Letter", {"C": "C"}).C, question) == 3
