"""What models write around a translation, and what of it is kept: a table of malformed replies, case by case."""

import json
from pathlib import Path

import pytest

from medexam_companions.translation import (
    QuestionText,
    TranslationCandidate,
    TranslationFault,
    clean_reply,
    judge_text,
    select,
)

SOURCE = QuestionText("q/1", "¿Cuál?", ((1, "Uno."), (2, "Dos."), (3, "Tres."), (4, "Cuatro.")))
KEYWORDS = ("Spanish:", "English:", "Translate the following")
GOOD = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."
REPLIES = [json.loads(line) for line in Path(__file__).with_name("replies.jsonl").read_text("utf-8").splitlines()]
"""Each a reply, and the faults of what is no translation."""
PLAIN = QuestionText("q/1", "Which?", ((1, "One."), (2, "Two."), (3, "Three."), (4, "Four.")))


def render_layout(text: QuestionText) -> str:
    return "\n".join([text.stem, *(f"{number}. {option}" for number, option in text.options)])


def judge_reply(setup, source, reply, *, cut_off=False, keywords=()):
    return judge_text(setup, source, clean_reply(reply or "", source.numbers, keywords), reply, cut_off=cut_off)


def judge(reply, *, cut_off=False):
    return judge_reply("zero_shot", SOURCE, reply, cut_off=cut_off, keywords=KEYWORDS)


@pytest.mark.parametrize(("reply", "faults"), REPLIES)
def test_a_translation_is_taken_out_of_what_stands_around_it_or_told_by_its_faults(reply, faults) -> None:
    candidate = judge(reply)
    assert list(candidate.faults) == faults
    assert faults or candidate.text == PLAIN


def test_a_reply_that_ends_at_its_budget_within_the_last_option_is_cut_off() -> None:
    assert judge(GOOD.removesuffix("ur."), cut_off=True).faults == (TranslationFault.CUT_OFF,)
    assert judge(GOOD + "\n\nAnd now I explain at len", cut_off=True).valid


@pytest.mark.parametrize(
    "option",
    ["-1,4 Kcal/mol.", "– 2,6 Kcal.", "+ 3.5.", "5-HT.", "2.5 mg.", "1 y 2 son ciertas.", "___ y ___.", "5'-3'."],  # noqa: RUF001
)
def test_what_looks_like_a_mark_within_an_option_stays(option) -> None:
    source = QuestionText("q", "¿Cuál es el valor de 2 * 3 * ___?", ((1, option), (2, "Dos."), (3, "Tres.")))

    assert judge_reply("expert", source, render_layout(source)).text == source


def test_numbers_at_the_beginning_of_a_stem_are_no_options() -> None:
    source = QuestionText("q", "1. De los siguientes:\n5-HT es", ((1, "A."), (2, "B.")))

    assert judge_reply("expert", source, render_layout(source)).text == source


def test_a_source_that_comes_back_word_for_word_is_told() -> None:
    assert judge(render_layout(SOURCE)).same_as_source
    assert not judge(GOOD).same_as_source


def candidate(setup, stem, *faults):
    return TranslationCandidate(setup, QuestionText("q", stem, ()), tuple(faults), same_as_source=False)


def chosen(**offered):
    """Question -> set-up, rule and similarity; set-ups are x, y and z in turn, `None` stands for an invalid one."""
    choices = select(
        {
            key: [
                candidate(setup, stem or "", *(() if stem else (TranslationFault.EMPTY_TEXT,)))
                for setup, stem in zip("xyz", stems, strict=True)
            ]
            for key, stems in offered.items()
        }
    )
    return {key: (one.candidate.setup, one.rule, one.similarity) for key, one in choices.items()}


def test_the_only_valid_one_is_taken_and_without_any_a_question_is_discarded() -> None:
    found = chosen(a=(None, "two", None), b=(None, None, None))
    assert found == {"a": ("y", "only_valid", None)}


def test_of_two_the_setup_with_fewer_errors_over_all_questions_is_taken() -> None:
    choices = chosen(a=("one", None, "three"), b=(None, "two", "three"))
    assert choices == dict.fromkeys("ab", ("z", "fewer_errors", None))


def test_of_three_the_two_most_similar_are_left_and_of_these_the_setup_with_fewer_errors() -> None:
    choices = chosen(a=("zzzzzz", "ab", "abc"), b=("one", None, "three"), c=("same", "same", "same"))
    # Dice of trigrams: ' ab', 'ab ' and ' ab', 'abc', 'bc ' have one in common.
    assert choices["a"] == ("z", "most_similar", pytest.approx(2 * 1 / (2 + 3)))
    # Of set-ups with equally few errors that which was named first.
    assert choices["c"] == ("x", "most_similar", 1.0)
