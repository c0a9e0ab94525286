"""Tested questions that a prompt would give away: demonstrations from an exam that is asked, or nearly the same words.

Exams repeat questions over the years; a prompt that shows one solved gives the answer of the other away.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from medexam.errors import SpecError
from medexam.items import ExamSet
from medexam.questions import Exam, Question
from medexam.specs.identity import digest

NEAR = 0.8
"""Share of common words (Jaccard, over stem and options) from which two questions count as the same."""
_WORD = re.compile(r"\w+")


def check_demonstrations(shown: Iterable[Mapping[str, Any]], asked: Sequence[Question], where: str) -> None:
    """Raises `SpecError` where a demonstration is from an exam that is asked, or nearly one of its questions.

    A demonstration is the fields that a prompt shows: the `question`, or its `stem` and `options` as texts.
    """
    exams = {question.exam for question in asked}
    texts: dict[str, str] = {}
    for demo in shown:
        question = demo.get("question")
        if not isinstance(question, Question):
            text = "\n".join(str(demo[name]) for name in ("question", "stem", "options") if name in demo)
            texts.setdefault(f"{text[:60]!r}", text)
        elif question.exam in exams:
            raise SpecError(
                f"{where}: demonstration {question.key} is from an exam that is asked; ask other exams, "
                "for instance with dataset.split=test"
            )
        else:
            texts[question.key] = _text(question)
    for place in _near(list(texts.values()), [_text(question) for question in asked]):
        raise SpecError(
            f"{where}: demonstration {list(texts)[place]} is nearly a question that is asked; ask other exams or "
            "optimize again"
        )


def digest_golds(exam_set: ExamSet) -> str:
    """A digest of the questions and of the golds that teach or choose."""
    return digest({"golds": [[question.key, exam_set.golds[question.key].number] for question in exam_set.questions]})


def check_apart(sets: Mapping[str, ExamSet]) -> None:
    """Raises `SpecError` where two of the sets, by their names in the spec, hold questions of one exam."""
    seen: dict[Exam, str] = {}
    for name, exam_set in sets.items():
        for exam in {question.exam for question in exam_set.questions}:
            other = seen.setdefault(exam, name)
            if other != name:
                held = exam.name if exam.year is None else f"{exam.discipline} {exam.year}"
                raise SpecError(
                    f"{other} and {name} both hold questions of {held}: an exam teaches, "
                    "chooses or is tested; give each its own years or split, such as train, dev and test"
                )


def near_duplicates(questions: Sequence[Question], others: Sequence[Question]) -> list[Question]:
    """Those of `questions` that share `NEAR` of their words with one of `others`."""
    return [questions[place] for place in _near([*map(_text, questions)], [*map(_text, others)])]


def _near(questions: Sequence[str], others: Sequence[str]) -> list[int]:
    """The places of those texts in `questions` that share `NEAR` of their words with one of `others`."""
    ours, theirs = (_words(texts) for texts in (questions, others))
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for place, known in enumerate(theirs):
        for word in known:
            holders[word].append(place)
    found = []
    for place, known in enumerate(ours):
        # A text that lacks more than the rest shares too few: it has one of any words more than those that may lack.
        rarest = sorted(known, key=lambda word: len(holders.get(word, ())))[: len(known) - int(NEAR * len(known)) + 1]
        likely = {other for word in rarest for other in holders.get(word, ())}
        if any(len(known & theirs[other]) >= NEAR * len(known | theirs[other]) for other in likely):
            found.append(place)
    return found


def _words(texts: Sequence[str]) -> list[set[str]]:
    return [set(_WORD.findall(text.lower())) for text in texts]


def _text(question: Question) -> str:
    return " ".join([question.stem, *(option.text for option in question.options)])
