"""An answer in any of the ways in which a module may write it means one option, or none."""

from enum import Enum

import pytest

from medexam.questions import Option
from medexam.signatures import read_choice


class Letter(Enum):
    C = "C"


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        (3, 3),
        (3.0, 3),
        ("3", 3),
        (" 3. ", 3),
        ("(3)", 3),
        ("C", 3),
        ("c)", 3),
        (Letter.C, 3),
        ("They can be added.", 3),
        ("they  can be ADDED", 3),
        ("3. They can be added.", 3),
        ("C) They can be added", 3),
        ("{Answer: 3}", 3),
        ("First {Answer: 2}, no: <Answer: 3>", 3),
        (0, None),
        (6, None),
        ("6", None),
        (2.5, None),
        (True, None),
        (None, None),
        ("F", None),
        ("", None),
        ("2. They can be added.", None),
        ("It is option 3, I think", None),
        ("{Answer: 9}", None),
    ],
)
def test_an_answer_means_an_option(answer, option, question) -> None:
    assert read_choice(answer, question) == option


def test_options_keep_their_printed_numbers(question) -> None:
    printed = question.model_copy(update={"options": (Option(2, "a"), Option(7, "same"), Option(9, "same"))})
    assert [read_choice(answer, printed) for answer in ("A", "B", 7, "7", "same", "D", 1)] == [
        2,
        7,
        7,
        7,
        None,
        None,
        None,
    ]


def _with_options(question, *texts):
    return question.model_copy(update={"options": tuple(Option(n, text) for n, text in enumerate(texts, start=1))})


@pytest.mark.parametrize(
    ("texts", "answer", "option"),
    [
        (("A", "C", "D", "E"), "D", 3),
        (("A", "C", "D", "E"), "d", 3),
        (("A", "C", "D", "E"), "E", 4),
        (("A", "C", "D", "E"), "B", 2),
        (("A", "C", "D", "E"), "(D)", None),
        (("A", "C", "D", "E"), "D) E", 4),
        (("A", "C", "D", "E"), "D) D", None),
        (("A", "C", "D", "E"), "3. D", 3),
        (("A", "C", "D", "E"), "2. D", None),
        (("A", "C", "D", "E"), 4, 4),
        (("A", "C", "D", "E"), "{Answer: 4}", 4),
        (("T", "B", "NK"), "B", 2),
        (("B", "T", "NK"), "B", 1),
        (("d", "D", "E", "F"), "D", 2),
        (("d", "D", "E", "F"), "d", 1),
        (("D", "D", "E", "F"), "D", None),
        (("3", "4", "5", "6"), "3", None),
        (("3", "4", "5", "6"), "3.", None),
        (("3", "4", "5", "6"), "5", 3),
        (("3", "4", "5", "6"), "3. 5", 3),
        (("3", "4", "5", "6"), "3. 3", None),
        (("3", "4", "5", "6"), "A", 1),
        (("3", "4", "5", "6"), 3, 3),
        (("3", "4", "5", "6"), "{Answer: 3}", 3),
        (("1", "2", "3", "4"), "3", 3),
        (("Vitamin A", "Vitamin C", "Vitamin D", "Vitamin E"), "D", None),
        (("Vitamin A", "Vitamin C", "Vitamin D", "Vitamin E"), "A", 1),
        (("Vitamin A", "Vitamin C", "Vitamin D", "Vitamin E"), "Vitamin D", 3),
        (("Vitamin A", "Vitamin C", "Vitamin D", "Vitamin E"), "C) Vitamin D", 3),
        (("B lymphocytes", "T lymphocytes", "Neutrophils", "Macrophages"), "B", None),
        (("A thiol group", "Amphotericin B", "A loop", "Iron"), "B", 2),
        (("A thiol group", "A loop", "Iron", "Zinc"), "A", 1),
    ],
)
def test_an_option_whose_text_is_a_letter_or_number_is_meant_by_its_text_or_not_at_all(
    texts, answer, option, question
) -> None:
    assert read_choice(answer, _with_options(question, *texts)) == option
