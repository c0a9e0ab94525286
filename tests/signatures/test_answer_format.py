"""The parser against a dense table of replies, and against anything hypothesis can think of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answer_replies import VARIATIONS
from medexam.signatures import find_answers, parse_answer, render_answer
from medexam.signatures.answer_format import cut_answers

FOUR = (1, 2, 3, 4)


@pytest.mark.parametrize(
    "reply",
    [
        *VARIATIONS,
        "The right option is the third. {Answer: 3}",
        "{Answer: 3}\nI am sure: {Answer: 3}",
        "{Answer: 3} because 1 and 2 are wrong.",
        "\uff5bAnswer\uff1a\uff13\uff5d",
        "{Ans\u200bwer: 3}",
        "\\{Answer: 3\\}",
        "I am not sure. {Answer: 3}",
        "No. {Answer: 3}",
        "It isn't {Answer: 1}; it is {Answer: 3}",
        "{Answer: 1} is wrong. {Answer: 3}",
        "rather than {Answer: 1}, {Answer: 3}",
        "Here is my answer in the requested format: {Answer: 3}",
        "For example, {Answer: 1}. I choose {Answer: 3}",
    ],
)
def test_minor_variations_are_answers(reply: str) -> None:
    assert parse_answer(reply, FOUR) == 3


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "3",
        "Answer: 3",
        "The answer is 3.",
        "The correct answer is option 3: are hyperpolarizing",
        "{Answer: 5}",
        "{Answer: 0}",
        "{Answer: 33}",
        "{Answer: 1, 2}",
        "{Answer: 3",
        "Answer: 3}",
        "{Answer: 3]",
        "<Answer: 3}",
        "{Answer: [number]}",
        "{Answer: three}",
        "{Answer: C}",
        "{Answers: 3}",
        "{Answer: 3.5}",
        "{Answer: -3}",
        "{Answer: ٣}",
        "{Answer: 1} or {Answer: 2}",
        "{Answer: 7} {Answer: 2}",
        "not {Answer: 1}",
        "It is not the answer {Answer: 1}",
        "No es {Answer: 2}",
        "{Answer: 2} is not right",
        "Please answer in the form {Answer: 1}",
        "Responda en el formato {Answer: 1}",
        "You should answer with {Answer: 1}",
        "such as {Answer: 1}",
    ],
)
def test_anything_else_is_no_answer(reply: str) -> None:
    assert parse_answer(reply, FOUR) is None


def test_the_question_says_which_numbers_are_options() -> None:
    assert parse_answer("{Answer: 5}", (1, 2, 3, 4, 5)) == 5
    assert parse_answer("{Answer: 5}", FOUR) is None


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Option 1 is plausible {Answer: 1}, but wait. {Answer: 2}", 2),
        ("{Answer: 2} and then {Answer: 9}", None),
        ("No idea.", None),
    ],
)
def test_after_reasoning_the_last_answer_counts(reply: str, answer: int | None) -> None:
    assert parse_answer(reply, FOUR, reasoned=True) == answer


@pytest.mark.parametrize(
    ("reply", "reasoned", "answer"),
    [
        ("Perhaps {Answer: 1}? Let me think about", True, None),
        ("Perhaps {Answer: 1}? Let me think about", False, None),
        ("So it is {Answer: 2}.", True, 2),
        ("{Answer: 2}\n\nExplanation: this", False, 2),
        ("{Answer: 2}\n\nBut wait", True, None),
    ],
)
def test_of_a_reply_that_was_cut_an_answer_at_its_end_counts(reply: str, *, reasoned: bool, answer: int | None) -> None:
    assert parse_answer(cut_answers(reply, reasoned=reasoned), FOUR, reasoned=reasoned) == answer


@pytest.mark.parametrize("form", ["braces", "angles"])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_what_is_rendered_is_read(form: str, number: int) -> None:
    assert parse_answer(render_answer(number, form), FOUR) == number


@given(st.text(alphabet=st.sampled_from("{}<>[]Answer: 0123456789\"' \n"), max_size=60))
def test_an_answer_is_always_a_legal_option(reply: str) -> None:
    assert parse_answer(reply, FOUR) in {None, *FOUR}
    for start, end, _ in find_answers(reply):
        assert "answer" in reply[start:end].lower()
