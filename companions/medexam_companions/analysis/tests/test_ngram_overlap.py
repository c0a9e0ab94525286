"""Words that questions share with texts: by hand, and against a search of the texts themselves."""

import random

from medexam.questions import Question
from medexam_companions.analysis import QuestionGrams


def _asked(key: str, stem: str, *options: str) -> Question:
    return Question.of(stem, options or ("yes indeed", "not at all"), key=key)


def test_capitals_signs_and_numbers_of_options_count_for_nothing() -> None:
    grams = QuestionGrams([_asked("q", "Which organ makes insulin?", "The liver.", "The pancreas.")], n=6)
    assert grams.find(["... WHICH ORGAN makes insulin: (a) the liver, (b) the pancreas"]) == {"q": 1}
    assert grams.find(["which organ makes insulin", "the liver the pancreas"]) == {}


def test_texts_are_counted_once_and_short_questions_named() -> None:
    grams = QuestionGrams([_asked("long", "one two three four five six"), _asked("short", "what?", "x", "y")], n=4)
    assert grams.too_short == {"short"}
    found = grams.find(["two three four five six and one two three four", "nothing", "three four five six"])
    assert found == {"long": 2}


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
    assert QuestionGrams(questions, n).find(texts) == expected
    assert expected
