"""Which questions of a data set are asked: filters, official splits, and a limit that samples evenly.

Functions over questions; which question is kept never depends on its language or its place in the file.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from medexam.errors import DatasetError
from medexam.questions import Exam, Question
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import CATALOGUE


def select_questions(questions: Sequence[Question], spec: DatasetSpec) -> tuple[Question, ...]:
    """Select the questions that `spec` asks for, in the order of `questions`.

    Raises `DatasetError` naming the filters, and what there is, when nothing is left.
    """
    matches = tuple(question for question in questions if _is_wanted(question, spec))
    if not matches:
        names = ("split", "years", "disciplines", "option_counts", "images")
        filters = {name: value for name in names if (value := getattr(spec, name)) not in (None, "all")}
        texts = {name: [value] if isinstance(value, str) else map(str, value) for name, value in filters.items()}
        parts = [f"{name}={','.join(values)}" for name, values in texts.items()]
        choices = {
            "years": {str(question.exam.year) for question in questions if question.exam.year is not None},
            "disciplines": {str(question.exam.discipline) for question in questions},
            "option_counts": {str(len(question.options)) for question in questions},
        }
        there = "; ".join(f"{name} {', '.join(sorted(values))}" for name, values in choices.items() if values)
        pictured = f"{sum(question.image is not None for question in questions)} with an image"
        facts = f"no question matches {', '.join(parts) or 'no filter'}: there are {there}; {pictured}"
        raise DatasetError(f"{spec.name}: {facts}; widen the filters")
    if spec.limit is None:
        return matches
    exams = ((each.exam.discipline, each.exam.year or 0, each.key) for each in matches)
    keys = sample_keys(exams, spec.limit, spec.seed)
    return tuple(question for question in matches if question.key in keys)


def sample_keys(items: Iterable[tuple[Any, int, str]], limit: int, seed: int) -> set[str]:
    """Choose at most `limit` of the items by their keys, spread over their groups and years, which stand before.

    Years take turns, and within a turn groups do. A larger limit with the same seed keeps every key of a smaller one.
    """
    groups: defaultdict[Any, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for group, year, key in items:
        groups[group][year].append(key)
    # Lots are drawn by key and not by place, so that the same questions are kept in every language and order of rows.
    turns: list[tuple[int, int, Any, str]] = []
    for group, years in groups.items():
        order = sorted(years, key=lambda year, group=group: draw_lot(seed, f"{group}/{year}"))  # type: ignore[misc]
        for position, year in enumerate(order):
            queue = sorted(years[year], key=lambda key: draw_lot(seed, key))
            turns += [(turn, position, group, key) for turn, key in enumerate(queue)]
    return {key for *_, key in sorted(turns)[:limit]}


def split_of(exam: Exam, name: str) -> str | None:
    """Return the official split that an exam of the data set `name` belongs to; None if it belongs to none."""
    if exam.split is not None or name not in CATALOGUE:
        return exam.split
    return next((split for split, years in CATALOGUE[name].splits.items() if exam.year in years), None)


def _is_wanted(question: Question, spec: DatasetSpec) -> bool:
    exam = question.exam
    return (
        (spec.split == "all" or split_of(exam, spec.name) == spec.split)
        and (spec.years is None or exam.year in spec.years)
        and (spec.disciplines is None or exam.discipline in spec.disciplines)
        and (spec.option_counts is None or len(question.options) in spec.option_counts)
        and (spec.images == "all" or (question.image is not None) == (spec.images == "with"))
    )


def draw_lot(seed: int, text: str) -> bytes:
    """Draw a repeatable lot: the same on every machine and Python, unlike a generator's shuffle."""
    return hashlib.sha256(f"{seed}:{text}".encode()).digest()
