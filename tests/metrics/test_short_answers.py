"""Exact match and F1 of short answers, beside a second way to count them."""

import random
import re
import string

import pytest

from medexam.metrics.extraction import score_short_answers
from medexam.predictions import Prediction
from medexam.questions import Task, TaskGold

WORDS = [
    "the",
    "a",
    "an",
    "liver",
    "Liver,",
    "cell",
    "cells",
    "(left)",
    "heart-rate",
    "5.5",
    "mg",
    "An",
    "...",
    "ácido",
]


def _normalise(text: str) -> list[str]:
    """SQuAD's rule, by a table of characters instead of a search for each mark."""
    kept = text.lower().translate({ord(mark): None for mark in string.punctuation})
    return [word for word in re.sub(r"\b(a|an|the)\b", " ", kept).split() if word]


def _f1(said: str, wanted: str) -> float:
    """Precision and recall by striking matching words off a list, one by one."""
    mine, rest, same = _normalise(said), _normalise(wanted), 0
    total = len(rest)
    for word in mine:
        if word in rest:
            rest.remove(word)
            same += 1
    if not same:
        return 0.0
    precision, recall = same / len(mine), same / total
    return 2 * precision * recall / (precision + recall)


def _score(said: str | None, answers: tuple[str, ...], language="en"):
    task = Task("k", "all", language, "Which?")
    status = "answered" if said else "unanswered"
    reason = {} if said else {"reason": "unparsed"}
    prediction = Prediction(question="k", program="p", spec_digest="d", status=status, answer=None, text=said, **reason)
    return score_short_answers([task], {"k": TaskGold(answers=answers)}, {"k": prediction})


@pytest.mark.parametrize("seed", range(40))
def test_both_ways_agree(seed) -> None:
    draw = random.Random(seed)
    said, *answers = (" ".join(draw.choices(WORDS, k=draw.randint(1, 5))) for _ in range(4))
    found = {name: scores["k"] for name, scores in _score(said, tuple(answers)).items.items()}
    assert found["f1"] == pytest.approx(max(_f1(said, answer) for answer in answers))
    assert found["exact_match"] == float(any(_normalise(said) == _normalise(answer) for answer in answers))


def test_the_best_of_several_answers_counts() -> None:
    scores = _score("the metformin", ("insulin", "metformin")).items
    assert (scores["f1"]["k"], scores["exact_match"]["k"]) == (1.0, 1.0)


def test_no_answer_scores_0() -> None:
    metrics = _score(None, ("metformin",)).metrics
    assert (metrics.unanswered, metrics.measures["f1"].value) == (1, 0.0)


def test_spanish_answers_have_the_spanish_rule_beside() -> None:
    assert list(_score("el hígado", ("hígado",), "es").items) == [
        "f1",
        "exact_match",
        "f1_spanish",
        "exact_match_spanish",
    ]
    assert list(_score("liver", ("liver",)).items) == ["f1", "exact_match"]
