"""What an exam looks like in numbers: sizes, lengths, and where the right answer stands.

Sizes and lengths are those of Correa-Guillén et al. (2025), table 1 and figures 3 and 4; splits those of
Vilares and Gómez-Rodríguez (2019), table 2. Pure functions over questions and golds. A word is what stands between
white space.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from statistics import fmean, median, stdev
from typing import TypeVar

from medexam.datasets.selection import split_of
from medexam.distributions import chi_square_tail
from medexam.frozen_model import FrozenModel
from medexam.questions import AnswerKey, Language, Question

K = TypeVar("K", bound=Hashable)


class Spread(FrozenModel):
    """How numbers are spread."""

    n: int
    """At least 1."""
    mean: float
    deviation: float
    """Standard deviation of the sample; 0 of a single one."""
    median: float
    least: int
    most: int
    quantiles: tuple[float, float, float, float, float]
    """Below which 5, 25, 50, 75 and 95 % of the numbers lie, linear between neighbours."""


class Lengths(FrozenModel):
    """How long texts are."""

    characters: Spread
    words: Spread


class TextLengths(FrozenModel):
    """How long the questions and the answers of a group are."""

    questions: Lengths
    """Of the stems."""
    answers: Lengths
    """Of the options, each on its own."""


class Positions(FrozenModel):
    """Place of the right answer among questions with as many options."""

    options: int
    n: int
    """Questions with that many options."""
    right: tuple[int, ...]
    """How often the first, the second, ... option is right."""
    chi_square: float
    """Pearson's statistic against all places being equally likely, with one degree of freedom less than options."""
    p: float
    """How likely counts this uneven are if all places were equally likely; rough where fewer than 5 are expected."""


class Statistics(FrozenModel):
    """A data set in numbers."""

    name: str
    language: Language
    questions: int
    exams: int
    by_exam: dict[str, dict[int, int]]
    """Questions by discipline, then by year: Table 1."""
    by_split: dict[str, dict[str, int]]
    """Questions by discipline, then by official split; those of exams without a split are left out."""
    overall: TextLengths
    by_year: dict[int, TextLengths]
    by_discipline: dict[str, TextLengths]
    by_discipline_and_year: dict[str, dict[int, TextLengths]]
    by_option_count: dict[int, int]
    positions: tuple[Positions, ...]
    """One for each number of options, in ascending order."""
    with_images: int
    images_by_discipline: dict[str, int]
    """Questions that refer to a picture; disciplines without any are left out."""


def compute_statistics(questions: Sequence[Question], key: AnswerKey, *, name: str, language: Language) -> Statistics:
    """Compute the statistics of `questions`, at least one; raises `DatasetError` if `key` lacks one of them."""
    by_discipline = _group(questions, lambda question: question.exam.discipline)
    years = {discipline: _by_year(members) for discipline, members in by_discipline.items()}
    images = Counter(question.exam.discipline for question in questions if question.image is not None)
    by_options = _group(questions, lambda question: len(question.options))
    return Statistics(
        name=name,
        language=language,
        questions=len(questions),
        exams=len({question.exam for question in questions}),
        by_exam={
            discipline: {year: len(members) for year, members in groups.items()} for discipline, groups in years.items()
        },
        by_split={discipline: count_splits(members, name) for discipline, members in by_discipline.items()},
        overall=measure_lengths(questions),
        by_year=_lengths(_by_year(questions)),
        by_discipline=_lengths(by_discipline),
        by_discipline_and_year={discipline: _lengths(groups) for discipline, groups in years.items()},
        by_option_count={count: len(members) for count, members in by_options.items()},
        positions=tuple(count_positions(members, key) for members in by_options.values()),
        with_images=images.total(),
        images_by_discipline=dict(sorted(images.items())),
    )


def count_splits(questions: Iterable[Question], name: str) -> dict[str, int]:
    """Count by split how many questions of the data set `name` belong to it, in the order train, dev, test."""
    counts = Counter(split_of(question.exam, name) for question in questions)
    return {split: counts[split] for split in ("train", "dev", "test") if counts[split]}


def measure_lengths(questions: Iterable[Question]) -> TextLengths:
    """Measure how long the stems and the options of `questions`, at least one, are."""
    question_list = list(questions)
    return TextLengths(
        questions=_measure([question.stem for question in question_list]),
        answers=_measure([option.text for question in question_list for option in question.options]),
    )


def count_positions(questions: Sequence[Question], key: AnswerKey) -> Positions:
    """Count where the right answers of `questions`, at least one and all with as many options, stand.

    A place is that in the exam's order, whatever number is printed there. Raises `DatasetError` if `key` lacks one.
    """
    options = len(questions[0].options)
    places = Counter(question.option_numbers.index(key[question.key].number) for question in questions)
    right = tuple(places[place] for place in range(options))
    expected = len(questions) / options
    chi_square = sum((count - expected) ** 2 for count in right) / expected
    p = chi_square_tail(chi_square, options - 1)
    return Positions(options=options, n=len(questions), right=right, chi_square=chi_square, p=p)


def _measure(texts: Sequence[str]) -> Lengths:
    return Lengths(characters=_spread([len(text) for text in texts]), words=_spread([len(t.split()) for t in texts]))


def _spread(values: Sequence[int]) -> Spread:
    return Spread(
        n=len(values),
        mean=fmean(values),
        deviation=stdev(values) if len(values) > 1 else 0.0,
        median=median(values),
        least=min(values),
        most=max(values),
        quantiles=_quantiles(values),
    )


def _quantiles(values: Sequence[int]) -> tuple[float, float, float, float, float]:
    ordered = sorted(values)

    def quantile(share: float) -> float:
        below, rest = divmod(share * (len(ordered) - 1), 1)
        low, high = ordered[int(below)], ordered[min(int(below) + 1, len(ordered) - 1)]
        return low + rest * (high - low)

    return quantile(0.05), quantile(0.25), quantile(0.5), quantile(0.75), quantile(0.95)


def _group(questions: Iterable[Question], key_of: Callable[[Question], K]) -> dict[K, list[Question]]:
    """Group the questions, the groups in ascending order."""
    groups: defaultdict[K, list[Question]] = defaultdict(list)
    for question in questions:
        groups[key_of(question)].append(question)
    return {name: groups[name] for name in sorted(groups)}  # type: ignore[type-var]


def _by_year(questions: Iterable[Question]) -> dict[int, list[Question]]:
    """Group those of exams whose year is known."""
    return _group(
        (question for question in questions if question.exam.year is not None), lambda question: question.exam.year or 0
    )


def _lengths(groups: Mapping[K, Sequence[Question]]) -> dict[K, TextLengths]:
    return {name: measure_lengths(members) for name, members in groups.items()}
