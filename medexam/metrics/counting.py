"""Counts: how each question came out, what chance gives on the same questions, and what the answers cost; and how
far two raters agree beyond chance.

A cell is one exam's questions with one number of options. All breakdowns are sums of cells, so the questions are walked
through once. The chance level is an expectation, found by arithmetic; the `random` control is one draw of it.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medexam.items import AnswerKey
from medexam.predictions import Prediction, Status
from medexam.questions import Exam, Question


@dataclass
class Tally:
    """How many questions came out how."""

    right: int = 0
    wrong: int = 0
    unanswered: int = 0
    failed: int = 0
    missing: int = 0

    @property
    def n(self) -> int:
        """Questions with a scorable prediction."""
        return self.right + self.wrong + self.unanswered

    @property
    def selected(self) -> int:
        """All questions."""
        return self.n + self.failed + self.missing

    @property
    def points(self) -> int:
        """`3 right - wrong`, whatever the number of options."""
        return 3 * self.right - self.wrong


class Cell(NamedTuple):
    """What the questions of one tally share."""

    exam: Exam
    option_count: int
    right_options: int = 1
    """How many of the options are right; any one of them is."""


def count(questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]) -> dict[Cell, Tally]:
    """The tally of each cell, in the order in which the cells first appear.

    Predictions for other questions are not looked at. Raises `DatasetError` if `key` lacks a question.
    """
    cells: dict[Cell, Tally] = {}
    for question in questions:
        gold = key[question.key]
        cell = Cell(question.exam, len(question.options), 1 + len(gold.others))
        tally = cells.get(cell)
        if tally is None:
            tally = cells[cell] = Tally()
        prediction = predictions.get(question.key)
        if prediction is None:
            tally.missing += 1
        elif prediction.status is Status.FAILED:
            tally.failed += 1
        elif prediction.status is Status.UNANSWERED:
            tally.unanswered += 1
        elif gold.accepts(prediction.answer):
            tally.right += 1
        else:
            tally.wrong += 1
    return cells


def count_apart(questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]) -> list[Tally]:
    """The tally of each question, in their order: what intervals resample where no exam holds questions together."""
    return [total(count([question], key, predictions).values()) for question in questions]


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum of tallies."""
    listed = list(tallies)
    return Tally(*(sum(getattr(tally, field.name) for tally in listed) for field in fields(Tally)))


def scored_exams(cells: Mapping[Cell, Tally]) -> dict[Exam, Tally]:
    """The tally of each exam that has at least one scored question."""
    exams: dict[Exam, list[Tally]] = {}
    for cell, tally in cells.items():
        exams.setdefault(cell.exam, []).append(tally)
    summed = {exam: total(tallies) for exam, tallies in exams.items()}
    return {exam: tally for exam, tally in summed.items() if tally.n}


@dataclass(frozen=True)
class Chance:
    """Expected scores of a uniform choice on the scored questions; None if none is scored."""

    accuracy: float | None
    exam_score: float | None
    points: float | None
    """Per exam, averaged over the exams with a scored question."""


def chance_level(cells: Mapping[Cell, Tally]) -> Chance:
    """The chance level of the scored questions of `cells`.

    A question with k options, r of them right, adds r/k to the expected right answers and (k-r)/k to the wrong ones.
    """
    n = sum(tally.n for tally in cells.values())
    if n == 0:
        return Chance(None, None, None)
    right = sum(tally.n * cell.right_options / cell.option_count for cell, tally in cells.items())
    points = 3 * right - (n - right)
    exams = {cell.exam for cell, tally in cells.items() if tally.n}
    return Chance(accuracy=right / n, exam_score=points / 3 / n, points=points / len(exams))


def count_costs(keys: Iterable[str], predictions: Mapping[str, Prediction]) -> dict[str, Any]:
    """Tokens (`prompt_tokens`, `completion_tokens`, `thinking_tokens`) and time over the predictions of `keys`.

    Time is `latency_p50_s` and `latency_p95_s`, and `answering_p50_s` and `answering_p95_s` without the waiting before.
    Each None if no prediction reports it; failed ones have no latency.
    """
    prompt = completion = thinking = None
    latencies, answering = array("d"), array("d")
    for key in keys:
        prediction = predictions.get(key)
        if prediction is None:
            continue
        prompt = _plus(prompt, prediction.prompt_tokens)
        completion = _plus(completion, prediction.completion_tokens)
        thinking = _plus(thinking, prediction.thinking_tokens)
        if prediction.latency_s is not None and prediction.status is not Status.FAILED:
            latencies.append(prediction.latency_s)
            if prediction.waiting_s is not None:
                answering.append(prediction.latency_s - prediction.waiting_s)
    p50, p95 = _percentiles(latencies)
    answering_p50, answering_p95 = _percentiles(answering)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "thinking_tokens": thinking,
        "latency_p50_s": p50,
        "latency_p95_s": p95,
        "answering_p50_s": answering_p50,
        "answering_p95_s": answering_p95,
    }


def _percentiles(seconds: "array[float]") -> tuple[float, float] | tuple[None, None]:
    """Median and 95th percentile; None of nothing."""
    if not seconds:
        return None, None
    p50, p95 = np.percentile(seconds, (50, 95))
    return float(p50), float(p95)


def _plus(total: int | None, more: int | None) -> int | None:
    """The sum of what is known; None if nothing is."""
    return total if more is None else (total or 0) + more


def cohens_kappa(table: NDArray[np.float64], *, quadratic: bool = False) -> float:
    """How far two raters agree beyond chance, 1 where they always do; `table[i, j]` counts items in `i` and `j`.

    `quadratic`: a disagreement weighs by the square of its distance, for ordered categories (Cohen 1968); otherwise
    all weigh the same (Cohen 1960). Not defined, and nan, if all items are in one category.
    """
    shares = table / table.sum()
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    places = np.arange(len(table))
    distance = np.abs(np.subtract.outer(places, places))
    weights = distance**2 if quadratic else (distance > 0)
    return float(1 - (weights * shares).sum() / (weights * expected).sum())
