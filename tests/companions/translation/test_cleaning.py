"""What models write around a translation, and what of it is kept: a table of malformed replies, case by case."""

import time

import pytest

from medexam.companions.translation.layout import QuestionText, render_layout, text_of
from medexam.companions.translation.selecting import select
from medexam.companions.translation.validity import TranslationFault, clean_reply, judge_text
from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec

SOURCE = QuestionText("q/1", "¿Cuál?", ((1, "Uno."), (2, "Dos."), (3, "Tres."), (4, "Cuatro.")))
KEYWORDS = ("Spanish:", "English:", "Translate the following")
GOOD = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."
PLAIN = QuestionText("q/1", "Which?", ((1, "One."), (2, "Two."), (3, "Three."), (4, "Four.")))


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


@pytest.mark.data
@pytest.mark.usefixtures("full_data")
def test_every_question_of_headqa_v1_survives_and_all_are_chosen_among_in_time() -> None:
    sources = {}
    for language in ("es", "en"):
        exams = load_exam_set(DatasetSpec(name="headqa_v1", language=language))
        sources[language] = {question.key: text_of(question) for question in exams.questions}
    replies = {key: render_layout(text) for key, text in sources["en"].items()}
    begun = time.process_time()
    candidates = {
        key: [
            judge_reply("zero_shot", source, f"English:\n{replies[key]}\n\nSpanish:\nmás", keywords=KEYWORDS),
            judge_reply("one_shot", source, replies[key].replace("the", "a"), keywords=KEYWORDS),
            judge_reply("expert", source, f"{replies[key]}\nNote: none.", keywords=KEYWORDS),
        ]
        for key, source in sources["es"].items()
    }
    selection = select(candidates)
    took = time.process_time() - begun

    assert [key for key, (first, *_) in candidates.items() if not first.valid] == []
    assert len(selection.choices) == 6765
    assert took < 60, "it takes five: what is quadratic takes hours"
