"""What models write around a translation, and what of it is kept: a table of malformed replies, case by case."""

import pytest

from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec
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
PLAIN = QuestionText("q/1", "Which?", ((1, "One."), (2, "Two."), (3, "Three."), (4, "Four.")))


def render_layout(text: QuestionText) -> str:
    return "\n".join([text.stem, *(f"{number}. {option}" for number, option in text.options)])


def judge_reply(setup, source, reply, *, cut_off=False, keywords=()):
    return judge_text(setup, source, clean_reply(reply or "", source.numbers, keywords), reply, cut_off=cut_off)


def judge(reply, *, cut_off=False):
    return judge_reply("zero_shot", SOURCE, reply, cut_off=cut_off, keywords=KEYWORDS)


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        GOOD + "\n",
        GOOD + "\n\nThe right answer is 3, because three is not four.",
        GOOD + "\nI hope that this helps!",
        GOOD + "\n5. A fifth one that was made up.",
        GOOD + "\n\nSpanish:\n¿Otra?\n1. A.\n2. B.",
        "English:\n" + GOOD,
        "**English:** " + GOOD,
        "Here is the translation:\n\n" + GOOD,
        "```\n" + GOOD + "\n```",
        "Which?\n1) One.\n2) Two.\n3) Three.\n4) Four.",
        "Which?\n(1) One.\n(2) Two.\n(3) Three.\n(4) Four.",
        "Which?\n1.- One.\n2.- Two.\n3.- Three.\n4.- Four.",
        "Which?\n1 - One.\n2 - Two.\n3 - Three.\n4 - Four.",
        "Which?\n1: One.\n2: Two.\n3: Three.\n4: Four.",
        "Which?\n1.One.\n2.Two.\n3.Three.\n4.Four.",
        "Which?\n\n  1.  One.\n\n  2.  Two.\n\n  3.  Three.\n\n  4.  Four.",
        "**Which?**\n**1.** One.\n**2.** Two.\n**3.** Three.\n**4.** Four.",
        "Which?\n- 1. One.\n- 2. Two.\n- 3. Three.\n- 4. Four.",
        "Which?\na) One.\nb) Two.\nc) Three.\nd) Four.",
        "Which?\nA. One.\nB. Two.\nC. Three.\nD. Four.",
        "Which? 1. One. 2. Two. 3. Three. 4. Four.",
        "Which?\r\n1. One.\r\n2. Two.\r\n3. Three.\r\n4. Four.",
    ],
)
def test_what_stands_around_a_translation_is_removed(reply) -> None:
    candidate = judge(reply)

    assert candidate.valid
    assert candidate.text == PLAIN


@pytest.mark.parametrize(
    ("reply", "faults"),
    [
        (None, (TranslationFault.EMPTY_TEXT, TranslationFault.OPTION_COUNT)),
        ("", (TranslationFault.EMPTY_TEXT, TranslationFault.OPTION_COUNT)),
        ("   \n", (TranslationFault.EMPTY_TEXT, TranslationFault.OPTION_COUNT)),
        ("English:\n", (TranslationFault.EMPTY_TEXT, TranslationFault.OPTION_COUNT)),
        ("I cannot translate this.", (TranslationFault.EMPTY_TEXT, TranslationFault.OPTION_COUNT)),
        ("1. One.\n2. Two.\n3. Three.\n4. Four.", (TranslationFault.EMPTY_TEXT,)),
        ("Which?\n1. One.\n2.\n3. Three.\n4. Four.", (TranslationFault.EMPTY_TEXT,)),
        ("Which?\n1. One.\n2. Two.\n3. Three.", (TranslationFault.OPTION_COUNT,)),
        ("Which?\n1. One.\n2. Two.\n3. Three.\n\nThat is all.", (TranslationFault.OPTION_COUNT,)),
        ("Which?\n1. One.\n2. Two.\n4. Four.", (TranslationFault.OPTION_COUNT, TranslationFault.NUMBERING)),
        ("Which?\n2. Two.\n3. Three.\n4. Four.", (TranslationFault.OPTION_COUNT, TranslationFault.NUMBERING)),
        (
            "Which?\n1. One.\n2. Two.\n2. Two again.\n3. Three.\n4. Four.",
            (TranslationFault.OPTION_COUNT, TranslationFault.NUMBERING),
        ),
        ("Which?\n1. One.\n3. Three.\n2. Two.\n4. Four.", (TranslationFault.NUMBERING,)),
        ("Which?\n1. One.\n1. Two.\n1. Three.\n1. Four.", (TranslationFault.NUMBERING,)),
    ],
)
def test_what_is_no_translation_is_told_by_its_faults(reply, faults) -> None:
    assert judge(reply).faults == faults


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


@pytest.mark.nightly
@pytest.mark.data
@pytest.mark.usefixtures("full_data")
def test_every_question_of_headqa_v1_survives_and_all_are_chosen_among() -> None:
    sources = {}
    for language in ("es", "en"):
        exams = load_exam_set(DatasetSpec(name="headqa_v1", language=language))
        sources[language] = {
            one.key: QuestionText(one.key, one.stem, tuple((option.number, option.text) for option in one.options))
            for one in exams.questions
        }
    replies = {key: render_layout(text) for key, text in sources["en"].items()}
    candidates = {
        key: [
            judge_reply("zero_shot", source, f"English:\n{replies[key]}\n\nSpanish:\nmás", keywords=KEYWORDS),
            judge_reply("one_shot", source, replies[key].replace("the", "a"), keywords=KEYWORDS),
            judge_reply("expert", source, f"{replies[key]}\nNote: none.", keywords=KEYWORDS),
        ]
        for key, source in sources["es"].items()
    }
    assert [key for key, (first, *_) in candidates.items() if not first.valid] == []
    assert len(select(candidates)) == 6765


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
    return {key: (one.candidate.setup, one.rule.value, one.similarity) for key, one in choices.items()}


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
