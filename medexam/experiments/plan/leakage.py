"""Tested questions that a prompt would give away: demonstrations from an exam that is asked, or nearly the same words.

Exams repeat questions over the years; a prompt that shows one solved gives the answer of the other away.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache

import dspy

from medexam.errors import SpecError
from medexam.questions import Exam, ExamSet, Question, Task
from medexam.specs import ProgramSpec
from medexam.specs.identity import digest

NEAR = 0.8
"""Share of common words (Jaccard, over stem and options) from which two questions count as the same."""
_LABEL = re.compile(r"^\W*(?:\d{1,2}|[A-Za-z])[.):]\s+", re.MULTILINE)
"""The number or letter of an option at the beginning of its line."""


def check_demonstrations(spec: ProgramSpec, program: dspy.Module, questions: Sequence[Question | Task]) -> None:
    """Raise `SpecError` if a demonstration is from an exam that is asked, or nearly one of its questions.

    All demonstrations that the program's predictors hold are checked, those of compiled modules too, wherever they come
    from. What a module of the user's own chooses while it runs is not seen.
    """
    origin, remedy = f"program {spec.label}", "show another"
    if spec.loads is not None:
        origin, remedy = f"program.load {spec.loads}", "optimize again"
    elif (words := spec.asking.words) is not None and words.kind == "few_shot":
        origin = f"program.examples {words.examples}"
    exams = {question.exam for question in questions if isinstance(question, Question)}
    texts: list[tuple[str, str]] = []
    for path, predictor in program.named_sub_modules(dspy.Predict):
        for number, demo in enumerate(predictor.demos, start=1):
            question = next((value for _, value in demo.items() if isinstance(value, Question)), None)
            if question is not None and question.exam in exams:
                raise SpecError(
                    f"{origin}: demonstration {question.key} is from an exam that is asked; ask other exams, "
                    "for instance with dataset.split=test"
                )
            if question is not None:
                texts.append((question.key, _text(question)))
                continue
            # Of fields of the user's own, which may hold the question, without the options' labels.
            inputs = {n: _LABEL.sub("", str(demo[n])) for n in predictor.signature.input_fields if n in demo}
            usual = " ".join(text for name, text in inputs.items() if name in ("question", "stem", "options"))
            name = f"{number} of {path.removeprefix('self.')}"
            texts += [(name, text) for text in (" ".join(inputs.values()), usual, *inputs.values())]
    for place, other in _find_near([text for _, text in texts], questions).items():
        raise SpecError(
            f"{origin}: demonstration {texts[place][0]} is nearly {other.key}, which is asked; ask other exams "
            f"or {remedy}"
        )


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
    return [questions[place] for place in _find_near([*map(_text, questions)], others)]


def _find_near(texts: Sequence[str], questions: Sequence[Question | Task]) -> dict[int, Question | Task]:
    """Map the place of each text that shares `NEAR` of its words with a question to that question."""
    words, holders = _index(tuple(questions)) if texts else ([], {})
    near = {}
    for place, text_words in enumerate(map(_words, texts)):
        # A text that lacks more than the rest shares too few: it has one of any words more than those that may lack.
        rarest = sorted(text_words, key=lambda word: len(holders.get(word, ())))
        rarest = rarest[: len(text_words) - int(NEAR * len(text_words)) + 1]
        for other in {other for word in rarest for other in holders.get(word, ())}:
            if len(text_words & words[other]) >= NEAR * len(text_words | words[other]):
                near[place] = questions[other]
    return near


@lru_cache(maxsize=2)
def _index(questions: tuple[Question | Task, ...]) -> tuple[list[set[str]], Mapping[str, list[int]]]:
    words = [_words(_text(question)) for question in questions]
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for place, question_words in enumerate(words):
        for word in question_words:
            holders[word].append(place)
    return words, holders


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _text(question: Question | Task) -> str:
    """Return what identifies a question: its stem and options, or of a task all that is shown but an answer."""
    if isinstance(question, Task):
        return " ".join([question.context, question.question, *question.options])
    return " ".join([question.stem, *(option.text for option in question.options)])
