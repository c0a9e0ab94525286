"""From questions, golds and predictions to `Metrics`: a pure function, so a stored run can be scored again.

An `ItemTable` has a row a question; every breakdown is a group of its rows. Averages over exams are those of Vilares
and Gómez-Rodríguez (2019), "HEAD-QA: A Healthcare Dataset for Complex Reasoning": each exam's accuracy is rounded, and
their mean again. The fractions are exact here, and a tie goes away from zero; docs/protocol.md says where that differs.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import rate_interval
from medexam.errors import DatasetError
from medexam.measures.evidence.kinds import holds_evidence, measure_evidence
from medexam.measures.intervals import resample
from medexam.measures.results import Measure, Metrics, Scores, Unit
from medexam.model_calls import Reading
from medexam.predictions import Prediction, Status
from medexam.predictions.prediction import Answered, as_read
from medexam.questions import AnswerKey, Exam, Gold, Question, Scoring

RIGHT, WRONG, UNANSWERED, FAILED, MISSING = range(5)
"""How a question came out."""
Outcomes = NDArray[np.int8]
COUNTS = ("selected", "n", "right", "wrong", "unanswered", "failed", "missing")
"""Names of all that `count_outcomes` finds."""
TIMES = ("latency_p50_s", "latency_p95_s")
"""Names of the times that `count_costs` finds, in seconds; two runs of the same cell differ in nothing else."""
_TOKENS = ("prompt_tokens", "completion_tokens", "thinking_tokens")
COSTS = (*_TOKENS, *(f"{name}_counted" for name in _TOKENS[:2]), "cost_usd", *TIMES)
"""Names of all numbers of tokens and times that `count_costs` finds."""
Rows = NDArray[np.intp] | slice
ALL = slice(None)
AVERAGES = {
    "headqa_v1_accuracy": ("HEAD-QA v1 accuracy, %", "v1 accuracy"),
    "headqa_v1_points": ("HEAD-QA v1 points", "v1 points"),
}
"""Name of the measure -> what stands beside its value, and above a column."""


@dataclass(frozen=True)
class ItemTable:
    """How each question came out, in the order of the questions; the chance level is an expectation, not a draw."""

    outcomes: Outcomes
    chance: NDArray[np.float64]
    """How likely a uniform choice is right: of k options, r of them right, r / k."""
    exams: NDArray[np.intp]
    """The number of each question's exam, from 0; each its own where the data set declares no exams."""
    scoring: Scoring | None
    facets: Mapping[str, Sequence[Hashable]]
    """Name -> the group of each row; `exam` only where the data set declares exams."""

    @classmethod
    def of(cls, rows: Sequence[tuple[Exam, int, int]], outcomes: Outcomes, scoring: Scoring | None) -> "ItemTable":
        """Make the table of questions with these exams, numbers of options and of right ones."""
        exams, option_counts, right_counts = zip(*rows, strict=True)
        # Most questions share one object as their exam, and to hash an exam takes long.
        distinct = {id(exam): exam for exam in exams}
        numbers: dict[Exam, int] = {}
        places = {exam_id: numbers.setdefault(exam, len(numbers)) for exam_id, exam in distinct.items()}
        facets: dict[str, Sequence[Hashable]] = {
            "discipline": [exam.discipline for exam in exams],
            "year": [exam.year for exam in exams],
            "option_count": option_counts,
        }
        exam_numbers = np.arange(len(exams))
        if not any(exam.independent for exam in numbers):
            # Two exams of one name are told apart by year and discipline.
            uses = Counter(exam.name for exam in numbers)
            names = [each.name + f" ({each.discipline} {each.year})" * (uses[each.name] > 1) for each in numbers]
            exam_numbers = np.array([places[id(exam)] for exam in exams], dtype=np.intp)
            facets["exam"] = [names[number] for number in exam_numbers]
        return cls(outcomes, np.array(right_counts) / option_counts, exam_numbers, scoring, facets)

    def score(self, rows: Rows = ALL) -> Scores:
        """Score some questions; only rates have intervals."""
        outcomes, has_exams = self.outcomes[rows], "exam" in self.facets
        counts = count_outcomes(outcomes)
        n, right, wrong, unanswered = (counts[name] for name in ("n", "right", "wrong", "unanswered"))
        by_chance = float(self.chance[rows][outcomes <= UNANSWERED].sum())

        def measure(value: float, chance: float | None = None, unit: Unit = Unit.SHARE, **more: Any) -> Measure:
            return Measure(value=value, n=n, chance=chance, unit=unit, **more) if n else Measure(unit=unit)

        share, scoring = max(n, 1), self.scoring
        exams = _count_exams(self.exams[rows], outcomes)
        measures = {"accuracy": measure(right / share, by_chance / share, interval=rate_interval(right, n))}
        if scoring is not None:
            lost, gained = wrong / scoring.cancelling, (n - by_chance) / scoring.cancelling
            measures["exam_score"] = measure((right - lost) / share, (by_chance - gained) / share)
        if scoring is not None and has_exams:
            points, size = scoring.cancelling * exams[:, RIGHT] - exams[:, WRONG], max(len(exams), 1)
            chance = scoring.cancelling * by_chance - (n - by_chance)
            measures["points"] = measure(float(points.sum()) / size, chance / size, Unit.POINTS)
        measures["unanswered_ratio"] = measure(unanswered / share, interval=rate_interval(unanswered, n))
        if scoring is not None and scoring.as_headqa_v1:
            rates = [Fraction(each[RIGHT], sum(each)) for each in exams.tolist()]
            values = headqa_v1_accuracy(rates), headqa_v1_points((3 * exams[:, RIGHT] - exams[:, WRONG]).tolist())
            for name, value in zip(AVERAGES, values, strict=True):
                measures[name] = measure(value or 0.0, unit=Unit.POINTS)
        return Scores(**counts, exams=len(exams) if has_exams else None, measures=measures)

    def score_whole(self) -> Scores:
        """Score all questions, with the intervals that resample exams, or questions where none holds them together."""
        scores = self.score()
        if self.scoring is None:
            return scores
        is_scored = self.outcomes <= UNANSWERED
        gains = np.array([self.scoring.cancelling, -1.0, 0.0])[self.outcomes[is_scored]]
        clusters = np.unique(self.exams[is_scored], return_inverse=True)[1]
        (ends, over), (points, _) = resample(np.column_stack([gains, gains]), clusters, (False, True))
        exam_score = ends and (ends[0] / self.scoring.cancelling, ends[1] / self.scoring.cancelling)
        measures = {
            name: scores.measures[name].model_copy(update={"interval": interval, "resampled": over})
            for name, interval in (("exam_score", exam_score), ("points", points))
            if name in scores.measures
        }
        return scores.model_copy(update={"measures": scores.measures | measures})


def compute_metrics(
    questions: Sequence[Question],
    key: AnswerKey,
    predictions: Mapping[str, Prediction],
    scoring: Scoring | None = None,
) -> Metrics:
    """Score `predictions` (by question key) on exactly these `questions`; `scoring` None: as right or wrong alone.

    Questions whose prediction failed or is missing enter no score; `Metrics.complete` says whether there are any.
    Raises `DatasetError` if there is no question, or when `key` lacks one.
    """
    if not questions:
        raise DatasetError("no question is selected, so there is nothing to score; widen the selection of the data set")
    outcomes, strict, lenient = np.full((3, len(questions)), MISSING, np.int8)
    readings: dict[Reading, Outcomes] = {"strict": strict, "lenient": lenient}
    differ = leaves_evidence = False
    rows = list[tuple[Exam, int, int]]()

    def look() -> Iterator[Prediction]:
        """Note what the table holds of each question, as it goes by: all of a large run would not fit the memory."""
        nonlocal differ, leaves_evidence
        for place, question in enumerate(questions):
            gold, prediction = key[question.key], predictions.get(question.key)
            rows.append((question.exam, len(question.options), 1 + len(gold.others)))
            if prediction is not None:
                outcomes[place] = find_outcome(gold, prediction)
                for reading, column in readings.items():
                    column[place] = find_outcome(gold, as_read(prediction, reading))
                differ = differ or prediction.lenient is not None
                leaves_evidence = leaves_evidence or holds_evidence(prediction)
                yield prediction

    costs = count_costs(look())
    table = ItemTable.of(rows, outcomes, scoring)
    facets = {name: _group_rows(values) for name, values in table.facets.items()}
    return Metrics(
        **dict(table.score_whole()),
        by={
            name: {str(group): table.score(rows) for group, rows in groups.items()}
            for name, groups in facets.items()
            if groups
        },
        evidence=measure_evidence(questions, key, predictions) if leaves_evidence else {},
        readings={name: replace(table, outcomes=column).score() for name, column in readings.items()}
        if differ
        else None,
        **costs,
    )


def headqa_v1_accuracy(exams: Sequence[Fraction]) -> float | None:
    """Average the accuracy of the exams in percent, with one decimal; None without an exam."""
    return float(100 * _round(sum((_round(rate, 3) for rate in exams), Fraction()) / len(exams), 3)) if exams else None


def headqa_v1_points(points: Sequence[int]) -> float | None:
    """Average the exams' `3 right - wrong`, with one decimal; None without an exam."""
    return float(_round(Fraction(sum(points), len(points)), 1)) if points else None


def _round(value: Fraction, decimals: int) -> Fraction:
    """Round `value` to that many decimals; a tie goes away from zero."""
    scale = 10**decimals
    rounded = Fraction(floor(abs(value) * scale + Fraction(1, 2)), scale)
    return rounded if value >= 0 else -rounded


def _count_exams(exams: NDArray[np.intp], outcomes: Outcomes) -> NDArray[np.int64]:
    """Count the right, wrong and unanswered questions of each exam that has a scored one: a row an exam."""
    kinds = MISSING + 1
    cells = np.bincount(exams * kinds + outcomes)
    padded = np.pad(cells, (0, -len(cells) % kinds)).reshape(-1, kinds)[:, : UNANSWERED + 1]
    scored: NDArray[np.int64] = padded[padded.sum(axis=1) > 0]
    return scored


def _group_rows(values: Sequence[Any]) -> dict[Any, NDArray[np.intp]]:
    """Map each value, in ascending order, to the rows that have it; None is left out."""
    members: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        if value is not None:
            members.setdefault(value, []).append(place)
    return {value: np.array(members[value], dtype=np.intp) for value in sorted(members)}


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


def count_outcomes(outcomes: Outcomes) -> dict[str, int]:
    """Count the outcomes of some questions, as fields of `Scores`."""
    right, wrong, unanswered, failed, missing = np.bincount(outcomes, minlength=MISSING + 1).tolist()
    n = right + wrong + unanswered
    return dict(zip(COUNTS, (len(outcomes), n, right, wrong, unanswered, failed, missing), strict=True))


def count_costs(predictions: Iterable[Prediction]) -> dict[str, Any]:
    """Count each of `COSTS` over the predictions, None if none reports it; and those `without_passages`.

    `_counted` is the number of predictions that report tokens, None unless others with a reply do not. The latency
    of failed predictions does not count.
    """
    replies = without_passages = 0
    columns: dict[str, list[float]] = {name: [] for name in (*_TOKENS, "cost_usd", "latency_s")}
    for prediction in predictions:
        replies += prediction.last_call is not None
        without_passages += prediction.passages == ()
        for name, column in columns.items():
            if (value := getattr(prediction, name)) is not None and (name != "latency_s" or not prediction.failure):
                column.append(value)
    latencies = columns.pop("latency_s")
    costs: dict[str, Any] = {name: sum(column) if column else None for name, column in columns.items()}
    if len(columns["cost_usd"]) != (len(columns["prompt_tokens"]) or replies):
        costs["cost_usd"] = None
    for name in _TOKENS[:2]:
        costs[f"{name}_counted"] = len(columns[name]) if 0 < len(columns[name]) < replies else None
    costs |= zip(TIMES, np.percentile(latencies, (50, 95)).tolist() if latencies else (None, None), strict=True)
    return costs | {"without_passages": without_passages}
