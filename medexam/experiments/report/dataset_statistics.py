"""What an exam looks like in numbers: sizes, lengths, and where the right answer stands.

Sizes and lengths are those of Correa-Guillén et al. (2025), table 1 and figures 3 and 4; splits those of
Vilares and Gómez-Rodríguez (2019), table 2. A word is what stands between white space.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from medexam.datasets.selection import split_of
from medexam.distributions import chi_square_tail
from medexam.frozen_model import FrozenModel
from medexam.questions import AnswerKey, Language, Question


class Spread(FrozenModel):
    """How numbers are spread."""

    n: int
    """At least 1."""
    mean: float
    deviation: float
    """Standard deviation of the sample; 0 of a single one."""
    most: int
    quantiles: tuple[float, float, float, float, float]
    """Below which 5, 25, 50, 75 and 95 % of the numbers lie, linear between neighbours."""


Lengths = dict[str, dict[str, Spread]]
"""`questions`, their stems alone, and `answers`, each option on its own -> `words` and `characters` -> their spread."""


class Positions(FrozenModel):
    """Place of the right answer among questions with as many options."""

    options: int
    n: int
    """Questions with that many options."""
    right: tuple[int, ...]
    """How often the first, the second, ... option is right, in the exam's order, whatever number is printed there."""
    chi_square: float
    """Pearson's statistic against all places being equally likely, with one degree of freedom less than options."""
    p: float
    """How likely counts this uneven are if all places were equally likely; rough where fewer than 5 are expected."""


class Statistics(FrozenModel):
    """A data set in numbers; groups in ascending order."""

    name: str
    language: Language
    questions: int
    exams: int
    by_exam: dict[str, dict[int, int]]
    """Questions by discipline, then by year: Table 1. Questions of exams without a year are left out."""
    by_split: dict[str, dict[str, int]]
    """Questions by discipline, then by official split; those of exams without a split are left out."""
    overall: Lengths
    by_year: dict[int, Lengths]
    by_discipline: dict[str, Lengths]
    positions: tuple[Positions, ...]
    """One for each number of options."""
    with_images: int
    images_by_discipline: dict[str, int]
    """Questions that refer to a picture; disciplines without any are left out."""


def compute_statistics(questions: Sequence[Question], key: AnswerKey, *, name: str, language: Language) -> Statistics:
    """Compute the statistics of `questions`, at least one; raises `DatasetError` if `key` lacks one of them."""
    by_discipline = _group(questions, lambda question: question.exam.discipline)
    by_year = _group(questions, lambda question: question.exam.year)
    by_options = _group(questions, lambda question: len(question.options))
    images = Counter(question.exam.discipline for question in questions if question.image is not None)
    splits = {
        discipline: Counter(split_of(question.exam, name) for question in members)
        for discipline, members in by_discipline.items()
    }
    return Statistics(
        name=name,
        language=language,
        questions=len(questions),
        exams=len({question.exam for question in questions}),
        by_exam={
            discipline: {year: len(asked) for year, asked in _group(members, lambda each: each.exam.year).items()}
            for discipline, members in by_discipline.items()
        },
        by_split={
            discipline: {split: counts[split] for split in ("train", "dev", "test") if counts[split]}
            for discipline, counts in splits.items()
        },
        overall=_measure(questions),
        by_year={year: _measure(members) for year, members in by_year.items()},
        by_discipline={discipline: _measure(members) for discipline, members in by_discipline.items()},
        positions=tuple(_count_positions(members, key) for members in by_options.values()),
        with_images=images.total(),
        images_by_discipline=dict(sorted(images.items())),
    )


def _group(questions: Iterable[Question], key_of: Callable[[Question], Any]) -> Mapping[Any, Sequence[Question]]:
    """Group the questions that have a key, the groups in ascending order."""
    groups: defaultdict[Any, list[Question]] = defaultdict(list)
    for question in questions:
        groups[key_of(question)].append(question)
    return {name: groups[name] for name in sorted(groups.keys() - {None})}


def _measure(questions: Sequence[Question]) -> Lengths:
    texts = {
        "questions": [question.stem for question in questions],
        "answers": [option.text for question in questions for option in question.options],
    }
    return {
        part: {
            "words": _spread([len(text.split()) for text in group]),
            "characters": _spread([len(text) for text in group]),
        }
        for part, group in texts.items()
    }


def _spread(values: Sequence[int]) -> Spread:
    return Spread(
        n=len(values),
        mean=float(np.mean(values)),
        deviation=float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        most=max(values),
        quantiles=tuple(np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()),
    )


def _count_positions(questions: Sequence[Question], key: AnswerKey) -> Positions:
    options = len(questions[0].options)
    places = Counter(question.option_numbers.index(key[question.key].number) for question in questions)
    right = tuple(places[place] for place in range(options))
    expected = len(questions) / options
    chi_square = sum((count - expected) ** 2 for count in right) / expected
    p = chi_square_tail(chi_square, options - 1)
    return Positions(options=options, n=len(questions), right=right, chi_square=chi_square, p=p)
