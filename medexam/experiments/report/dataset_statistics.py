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
from medexam.questions import AnswerKey, Language, Question

Statistics = dict[str, Any]
"""A data set in numbers, JSON-ready; see `compute_statistics`."""


def compute_statistics(questions: Sequence[Question], key: AnswerKey, *, name: str, language: Language) -> Statistics:
    """Compute the statistics of `questions`, at least one; raises `DatasetError` if `key` lacks one of them.

    - `name`, `language`; numbers of `questions`, `exams` and those `with_images`, which refer to a picture
    - `by_exam`, `by_split`: discipline -> year, or official split -> questions; those of exams without one are left out
    - `images_by_discipline`
    - `overall`, `by_year`, `by_discipline`: lengths of `questions`, their stems, and of `answers`, each option, in
      `words` and `characters`: `n`, `mean`, `deviation` of the sample, `most`, and the 5, 25, 50, 75 and 95 %
      `quantiles`
    - `positions`: for each number of `options`, how often the first, the second, ... one is `right`, in the exam's
      order; Pearson's `chi_square` and `p` against all being equally likely, rough where fewer than 5 are expected
    """
    by_discipline = _group(questions, lambda question: question.exam.discipline)
    by_year = _group(questions, lambda question: question.exam.year)
    images = _group((each for each in questions if each.image is not None), lambda question: question.exam.discipline)
    return {
        "name": name,
        "language": language,
        "questions": len(questions),
        "exams": len({question.exam for question in questions}),
        "by_exam": {
            group: {year: len(items) for year, items in _group(members, lambda question: question.exam.year).items()}
            for group, members in by_discipline.items()
        },
        "by_split": {
            group: {split: counts[split] for split in ("train", "dev", "test") if counts[split]}
            for group, members in by_discipline.items()
            for counts in [Counter(split_of(question.exam, name) for question in members)]
        },
        "overall": _measure(questions),
        "by_year": {year: _measure(members) for year, members in by_year.items()},
        "by_discipline": {group: _measure(members) for group, members in by_discipline.items()},
        "positions": [_positions(each, key) for each in _group(questions, lambda each: len(each.options)).values()],
        "with_images": sum(map(len, images.values())),
        "images_by_discipline": {group: len(members) for group, members in images.items()},
    }


def _group(questions: Iterable[Question], key_of: Callable[[Question], Any]) -> Mapping[Any, Sequence[Question]]:
    """Group the questions that have a key, the groups in ascending order."""
    groups: defaultdict[Any, list[Question]] = defaultdict(list)
    for question in questions:
        groups[key_of(question)].append(question)
    return {name: groups[name] for name in sorted(groups.keys() - {None})}


def _measure(questions: Sequence[Question]) -> dict[str, dict[str, dict[str, Any]]]:
    texts = {
        "questions": [question.stem for question in questions],
        "answers": [option.text for question in questions for option in question.options],
    }
    return {
        part: {"words": _spread([len(text.split()) for text in group]), "characters": _spread([*map(len, group)])}
        for part, group in texts.items()
    }


def _spread(values: Sequence[int]) -> dict[str, Any]:
    return {
        "n": len(values),
        "mean": float(np.mean(values)),
        "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        "most": max(values),
        "quantiles": np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist(),
    }


def _positions(questions: Sequence[Question], key: AnswerKey) -> dict[str, Any]:
    options = len(questions[0].options)
    places = Counter(question.option_numbers.index(key[question.key].number) for question in questions)
    right = [places[place] for place in range(options)]
    expected = len(questions) / options
    chi_square = sum((count - expected) ** 2 for count in right) / expected
    p = chi_square_tail(chi_square, options - 1)
    return {"options": options, "n": len(questions), "right": right, "chi_square": chi_square, "p": p}
