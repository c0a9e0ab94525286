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

from medexam.predictions import Prediction, Status
from medexam.predictions.prediction import Answered
from medexam.questions import AnswerKey, Exam, Gold, Question


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


class TallyCell(NamedTuple):
    """What the questions of one tally share."""

    exam: Exam
    option_count: int
    right_options: int = 1
    """How many of the options are right; any one of them is."""


RIGHT, WRONG, UNANSWERED, FAILED, MISSING = range(5)
"""How a question came out: the place of its field in `Tally`."""
Outcomes = NDArray[np.int8]
POINTS = np.array([3.0, -1.0, 0.0])
"""Of a question that came out so, for those that are scored."""

TIMES = ("latency_p50_s", "latency_p95_s", "answering_p50_s", "answering_p95_s")
"""Names of the times that `count_costs` finds, in seconds; two runs of the same cell differ in nothing else."""
COUNTED = ("prompt_tokens_counted", "completion_tokens_counted")
"""Names of the numbers of predictions whose tokens are known."""
COSTS = ("prompt_tokens", "completion_tokens", "thinking_tokens", *COUNTED, *TIMES)
"""Names of all that `count_costs` finds."""


def find_outcomes(keys: Sequence[str], key: AnswerKey, predictions: Mapping[str, Answered]) -> Outcomes:
    """Find how each question came out, in the order of `keys`; raises `DatasetError` if `key` lacks one."""
    outcomes = (find_outcome(key[question_key], predictions.get(question_key)) for question_key in keys)
    return np.fromiter(outcomes, np.int8, len(keys))


def find_outcome(gold: Gold, prediction: Answered | None) -> int:
    """Return how a question came out; None: it has no prediction."""
    if prediction is None:
        return MISSING
    status = prediction.status
    if status is Status.ANSWERED:
        return RIGHT if gold.accepts(prediction.answer) else WRONG
    return FAILED if status is Status.FAILED else UNANSWERED


def count(questions: Sequence[Question], key: AnswerKey, outcomes: Outcomes) -> dict[TallyCell, Tally]:
    """Count the tally of each cell, in the order in which the cells first appear.

    Item i of `outcomes` is question i. Raises `DatasetError` if `key` lacks a question.
    """
    # Most questions share one object as their exam, and to hash an exam takes longer than all else here.
    place_cache: dict[tuple[int, int, int], int] = {}
    cells: dict[TallyCell, int] = {}
    places = []
    for question in questions:
        exam, options, right = question.exam, len(question.options), 1 + len(key[question.key].others)
        place = place_cache.get((id(exam), options, right))
        if place is None:
            place = cells.setdefault(TallyCell(exam, options, right), len(cells))
            place_cache[id(exam), options, right] = place
        places.append(place)
    kinds = MISSING + 1
    counts = np.bincount(np.array(places, dtype=int) * kinds + outcomes, minlength=kinds * len(cells))
    return {cell: Tally(*row) for cell, row in zip(cells, counts.reshape(-1, kinds).tolist(), strict=True)}


def total(tallies: Iterable[Tally]) -> Tally:
    """Sum tallies."""
    tally_list = list(tallies)
    return Tally(*(sum(getattr(tally, field.name) for tally in tally_list) for field in fields(Tally)))


def scored_exams(cells: Mapping[TallyCell, Tally]) -> dict[Exam, Tally]:
    """Return the tally of each exam that has at least one scored question."""
    exams: dict[Exam, list[Tally]] = {}
    for cell, tally in cells.items():
        exams.setdefault(cell.exam, []).append(tally)
    exam_tallies = {exam: total(tallies) for exam, tallies in exams.items()}
    return {exam: tally for exam, tally in exam_tallies.items() if tally.n}


@dataclass(frozen=True)
class Chance:
    """Expected scores of a uniform choice on the scored questions; None if none is scored."""

    accuracy: float | None
    exam_score: float | None
    points: float | None
    """Per exam, averaged over the exams with a scored question."""


def chance_level(cells: Mapping[TallyCell, Tally]) -> Chance:
    """Compute the chance level of the scored questions of `cells`.

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
    """Count each of `COSTS`: tokens and time over the predictions of `keys`; None if no prediction reports it.

    `answering_` is latency without the waiting before. Failed predictions have no latency.
    """
    replies, prompts, completions, thinking = 0, _TokenSum(), _TokenSum(), _TokenSum()
    latencies, answering = array("d"), array("d")
    for key in keys:
        prediction = predictions.get(key)
        if prediction is None:
            continue
        replies += prediction.last_call is not None
        prompts.add(prediction.prompt_tokens)
        completions.add(prediction.completion_tokens)
        thinking.add(prediction.thinking_tokens)
        if prediction.latency_s is not None and prediction.status is not Status.FAILED:
            latencies.append(prediction.latency_s)
            if prediction.waiting_s is not None:
                answering.append(prediction.latency_s - prediction.waiting_s)
    tokens = (prompts.total, completions.total, thinking.total)
    report_counts = (prompts.counted_of(replies), completions.counted_of(replies))
    times = (*_percentiles(latencies), *_percentiles(answering))
    return dict(zip(COSTS, (*tokens, *report_counts, *times), strict=True))


@dataclass
class _TokenSum:
    """Tokens over predictions, as far as they are known."""

    total: int | None = None
    """None if no prediction reports them."""
    reports: int = 0
    """Predictions that report them."""

    def add(self, tokens: int | None) -> None:
        """Add one more prediction."""
        if tokens is not None:
            self.total = (self.total or 0) + tokens
            self.reports += 1

    def counted_of(self, replies: int) -> int | None:
        """Return how many predictions the sum counts; None if it counts none, or all that have a reply."""
        return self.reports if 0 < self.reports < replies else None


def _percentiles(seconds: "array[float]") -> tuple[float, float] | tuple[None, None]:
    """Compute the median and 95th percentile; None of nothing."""
    if not seconds:
        return None, None
    p50, p95 = np.percentile(seconds, (50, 95))
    return float(p50), float(p95)


def cohens_kappa(table: NDArray[np.float64], *, quadratic: bool = False) -> float:
    """Measure how far two raters agree beyond chance, 1 at the most; `table[i, j]` counts items in `i` and `j`.

    `quadratic`: a disagreement weighs by the square of its distance, for ordered categories (Cohen 1968); otherwise
    all weigh the same (Cohen 1960). Not defined, and nan, if all items are in one category.
    """
    shares = table / table.sum()
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    places = np.arange(len(table))
    distance = np.abs(np.subtract.outer(places, places))
    weights = distance**2 if quadratic else (distance > 0)
    return float(1 - (weights * shares).sum() / (weights * expected).sum())
