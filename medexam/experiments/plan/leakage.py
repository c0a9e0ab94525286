"""Tested questions that a prompt would give away: demonstrations from an exam that is asked, or nearly the same words.

Exams repeat questions over the years; a prompt that shows one solved gives the answer of the other away.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import dspy

from medexam.errors import SpecError
from medexam.questions import Exam, ExamSet, Question, Task
from medexam.specs import ProgramSpec
from medexam.specs.identity import digest

NEAR = 0.8
"""Share of common words (Jaccard, over stem and options) from which two questions count as the same."""
_WORD = re.compile(r"\w+")
_LABEL = re.compile(r"^\W*(?:\d{1,2}|[A-Za-z])[.):]\s+", re.MULTILINE)
"""The number or letter of an option at the beginning of its line."""


def check_demonstrations(spec: ProgramSpec, program: dspy.Module, questions: Sequence[Question | Task]) -> None:
    """Raise `SpecError` if a demonstration is from an exam that is asked, or nearly one of its questions.

    All demonstrations that the program's predictors hold are checked, wherever they come from: those of a file of
    examples, of an optimized program, and of a module of the user's own. What such a module chooses while it runs is
    not seen.
    """
    origin, remedy = _source(spec)
    exams = {question.exam for question in questions if isinstance(question, Question)}
    names, texts = [], []
    for name, demo, signature in _demonstrations(program):
        question = next((value for _, value in demo.items() if isinstance(value, Question)), None)
        if question is not None and question.exam in exams:
            raise SpecError(
                f"{origin}: demonstration {question.key} is from an exam that is asked; ask other exams, "
                "for instance with dataset.split=test"
            )
        question_texts = _field_texts(demo, signature) if question is None else [_text(question)]
        names += [name if question is None else question.key] * len(question_texts)
        texts += question_texts
    for place, other in (_places_near(texts, _index(tuple(questions))) if texts else {}).items():
        raise SpecError(
            f"{origin}: demonstration {names[place]} is nearly {questions[other].key}, which is asked; ask other exams "
            f"or {remedy}"
        )


def _source(spec: ProgramSpec) -> tuple[str, str]:
    """Return where a program's demonstrations come from, and what helps beside asking other exams."""
    if spec.loads is not None:
        return f"program.load {spec.loads}", "optimize again"
    if spec.asking.words is not None and spec.asking.words.examples is not None:
        return f"program.examples {spec.asking.words.examples}", "show another"
    return f"program {spec.label}", "show another"


def _demonstrations(program: dspy.Module) -> Iterator[tuple[str, dspy.Example, type[dspy.Signature]]]:
    """Yield each demonstration with its name and its predictor's signature; compiled modules are looked into too."""
    for name, predictor in program.named_sub_modules(dspy.Predict):
        for number, demo in enumerate(predictor.demos, start=1):
            yield f"{number} of {name.removeprefix('self.')}", demo, predictor.signature


def _field_texts(demo: dspy.Example, signature: type[dspy.Signature]) -> list[str]:
    """List what may be the question of a demonstration in fields of the user's own, without the options' labels."""
    inputs = {name: _LABEL.sub("", str(demo[name])) for name in signature.input_fields if name in demo}
    usual = [text for name, text in inputs.items() if name in ("question", "stem", "options")]
    return [" ".join(inputs.values()), " ".join(usual), *inputs.values()]


def digest_golds(exam_set: ExamSet) -> str:
    """Compute a digest of the questions and of the golds that teach or choose."""
    return digest({"golds": [[question.key, exam_set.golds[question.key].number] for question in exam_set.questions]})


def check_apart(sets: Mapping[str, ExamSet]) -> None:
    """Raise `SpecError` where two of the sets, by their names in the spec, hold questions of one exam."""
    name_by_exam: dict[Exam, str] = {}
    for name, exam_set in sets.items():
        for exam in {question.exam for question in exam_set.questions}:
            other_name = name_by_exam.setdefault(exam, name)
            if other_name != name:
                exam_label = exam.name if exam.year is None else f"{exam.discipline} {exam.year}"
                raise SpecError(
                    f"{other_name} and {name} both hold questions of {exam_label}: an exam may serve for only one of "
                    "training, validation and testing; give each its own years or split, such as train, dev and test"
                )


def near_duplicates(questions: Sequence[Question], others: Sequence[Question]) -> list[Question]:
    """Find those of `questions` that share `NEAR` of their words with one of `others`."""
    return [questions[place] for place in _places_near([*map(_text, questions)], _index(tuple(others)))]


class _Index(NamedTuple):
    words: list[set[str]]
    """Of each question."""
    holders: Mapping[str, list[int]]
    """Word -> the places of the questions that hold it."""


@lru_cache(maxsize=2)
def _index(questions: tuple[Question | Task, ...]) -> _Index:
    """Index the words of questions; kept, since the cells of a plan mostly ask the same ones."""
    words = _words([*map(_text, questions)])
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for place, question_words in enumerate(words):
        for word in question_words:
            holders[word].append(place)
    return _Index(words, holders)


def _places_near(texts: Sequence[str], index: _Index) -> dict[int, int]:
    """Map the place of each text that shares `NEAR` of its words with a question to the question's place."""
    neighbours = {}
    for place, text_words in enumerate(_words(texts)):
        # A text that lacks more than the rest shares too few: it has one of any words more than those that may lack.
        rarest = sorted(text_words, key=lambda word: len(index.holders.get(word, ())))
        rarest = rarest[: len(text_words) - int(NEAR * len(text_words)) + 1]
        for other in {other for word in rarest for other in index.holders.get(word, ())}:
            if len(text_words & index.words[other]) >= NEAR * len(text_words | index.words[other]):
                neighbours[place] = other
    return neighbours


def _words(texts: Sequence[str]) -> list[set[str]]:
    return [set(_WORD.findall(text.lower())) for text in texts]


def _text(question: Question | Task) -> str:
    """Return what identifies a question: its stem and options, or of a task all that is shown but an answer."""
    if isinstance(question, Task):
        return " ".join([question.context, question.question, *question.options])
    return " ".join([question.stem, *(option.text for option in question.options)])
