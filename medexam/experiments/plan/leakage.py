"""Tested questions that a prompt would give away: demonstrations from an exam that is asked, or nearly the same words.

Exams repeat questions over the years; a prompt that shows one solved gives the answer of the other away.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medexam.errors import SpecError
from medexam.items import ExamSet
from medexam.questions import Exam, Question
from medexam.specs.identity import digest

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NEAR = 0.8
"""Share of common words (Jaccard, over stem and options) from which two questions count as the same."""
_WORD = re.compile(r"\w+")
_ROWS = 512
"""Questions that are compared at a time."""


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
    if not questions or not others:
        return []
    words = [set(_WORD.findall(text.lower())) for text in (*questions, *others)]
    columns: dict[str, int] = {}
    for known in words:
        for word in known:
            columns.setdefault(word, len(columns))
    ours, theirs = _incidence(words[: len(questions)], columns), _incidence(words[len(questions) :], columns)
    their_sizes = np.asarray(theirs.sum(axis=1)).ravel()
    found: list[int] = []
    for start in range(0, len(questions), _ROWS):
        rows = ours[start : start + _ROWS]
        common = (rows @ theirs.T).tocoo()
        sizes = np.asarray(rows.sum(axis=1)).ravel()
        either = sizes[common.row] + their_sizes[common.col] - common.data
        near = np.unique(common.row[common.data >= NEAR * either])
        found += [start + int(row) for row in near]
    return found


def _text(question: Question) -> str:
    return " ".join([question.stem, *(option.text for option in question.options)])


def _incidence(words: Sequence[set[str]], columns: dict[str, int]) -> "csr_array":
    """Row i has a 1 for each word of text i."""
    held = [columns[word] for known in words for word in known]
    ends = np.cumsum([0, *(len(known) for known in words)])
    from scipy.sparse import csr_array  # not above: most plans compare no words

    return csr_array((np.ones(len(held), dtype=np.int32), held, ends), shape=(len(words), len(columns)))
