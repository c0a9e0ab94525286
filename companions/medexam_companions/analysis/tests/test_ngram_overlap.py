"""Words that questions share with texts: by hand, and against a search of the texts themselves."""

import random

from medexam.questions import Question
from medexam_companions.analysis import count_overlaps


def _asked(key: str, stem: str, *options: str) -> Question:
    return Question.of(stem, options or ("yes indeed", "not at all"), key=key)


def test_capitals_signs_and_numbers_of_options_count_for_nothing() -> None:
    questions = [_asked("q", "Which organ makes insulin?", "The liver.", "The pancreas.")]
    texts = ["... WHICH ORGAN makes insulin: (a) the liver, (b) the pancreas"]
    assert count_overlaps(questions, texts, n=6)["shared"] == {"q": 1}
    assert count_overlaps(questions, ["which organ makes insulin", "the liver the pancreas"], n=6)["shared"] == {}


def test_texts_are_counted_once_and_short_questions_named() -> None:
    questions = [_asked("long", "one two three four five six"), _asked("short", "what?", "x", "y")]
    texts = ["two three four five six and one two three four", "nothing", "three four five six"]
    found = count_overlaps(questions, texts, n=4)
    assert found == {"words": 4, "passages": 3, "too_short": ["short"], "shared": {"long": 2}}


def test_it_finds_what_a_plain_search_finds() -> None:
    rng = random.Random(4)
    words = ["aa", "bb", "cc"]
    draw = lambda count: " ".join(rng.choices(words, k=count))  # noqa: E731
    questions = [_asked(str(number), draw(8), draw(2), draw(2)) for number in range(40)]
    texts = [draw(30) for _ in range(60)]
    n = 7
    expected: dict[str, int] = {}
    for question in questions:
        own = " ".join([question.stem, *(option.text for option in question.options)]).split()
        runs = {" ".join(own[at : at + n]) for at in range(len(own) - n + 1)}
        if count := sum(any(run in text for run in runs) for text in texts):
            expected[question.key] = count
    assert count_overlaps(questions, texts, n)["shared"] == expected
    assert expected
