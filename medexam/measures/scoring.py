"""From questions, golds and predictions to `Metrics`: a pure function, so a stored run can be scored again.

An `ItemTable` has a row a question; every breakdown is a group of its rows.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import rate_interval
from medexam.errors import DatasetError
from medexam.measures.counting import (
    MISSING,
    RIGHT,
    UNANSWERED,
    WRONG,
    Outcomes,
    count_costs,
    count_outcomes,
    find_outcome,
    find_outcomes,
)
from medexam.measures.evidence.kinds import measure_evidence
from medexam.measures.exam_averages import headqa_v1_accuracy, headqa_v1_points
from medexam.measures.intervals import question_interval, score_intervals
from medexam.measures.results import Measure, Measures, Metrics, Scores, Unit
from medexam.model_calls import Reading
from medexam.predictions import Prediction
from medexam.predictions.prediction import as_read
from medexam.questions import AnswerKey, Exam, Question, Scoring

Rows = NDArray[np.intp] | slice
ALL = slice(None)
Facets = Mapping[str, Sequence[Hashable | None]]
"""Name -> the group of each row; None: it is in none."""


@dataclass(frozen=True)
class ItemTable:
    """How each question came out, in the order of the questions; the chance level is an expectation, not a draw."""

    outcomes: Outcomes
    chance: NDArray[np.float64]
    """How likely a uniform choice is right: of k options, r of them right, r / k."""
    exams: NDArray[np.intp]
    """The number of each question's exam, from 0."""
    scoring: Scoring | None
    has_exams: bool
    """Whether these are exams, and not groups that the data set declares no exams for."""
    facets: Facets

    @classmethod
    def of(
        cls,
        questions: Sequence[Question],
        key: AnswerKey,
        predictions: Mapping[str, Prediction],
        scoring: Scoring | None,
    ) -> "ItemTable":
        """Make the table of these questions; raises `DatasetError` if `key` lacks one."""
        # Most questions share one object as their exam, and to hash an exam takes long.
        exams = {id(question.exam): question.exam for question in questions}
        numbers: dict[Exam, int] = {}
        places = {exam_id: numbers.setdefault(exam, len(numbers)) for exam_id, exam in exams.items()}
        names = _name_exams(numbers)
        has_exams = not any(exam.independent for exam in numbers)
        facets: dict[str, Sequence[Hashable | None]] = {
            "discipline": [question.exam.discipline for question in questions],
            "year": [question.exam.year for question in questions],
            "option_count": [len(question.options) for question in questions],
        }
        if has_exams:
            facets["exam"] = [names[places[id(question.exam)]] for question in questions]
        return cls(
            outcomes=find_outcomes([question.key for question in questions], key, predictions),
            chance=np.array([(1 + len(key[each.key].others)) / len(each.options) for each in questions]),
            exams=np.array([places[id(question.exam)] for question in questions], dtype=np.intp),
            scoring=scoring,
            has_exams=has_exams,
            facets=facets,
        )

    def exam_counts(self, rows: Rows = ALL) -> NDArray[np.int64]:
        """Count the right, wrong and unanswered questions of each exam that has a scored one: a row an exam."""
        kinds = MISSING + 1
        cells = np.bincount(self.exams[rows] * kinds + self.outcomes[rows])
        padded = np.pad(cells, (0, -len(cells) % kinds)).reshape(-1, kinds)[:, : UNANSWERED + 1]
        scored: NDArray[np.int64] = padded[padded.sum(axis=1) > 0]
        return scored

    def score(self, rows: Rows = ALL) -> Scores:
        """Score some questions; only rates have intervals."""
        outcomes = self.outcomes[rows]
        counts = count_outcomes(outcomes)
        n, right, wrong, unanswered = (counts[name] for name in ("n", "right", "wrong", "unanswered"))
        by_chance = float(self.chance[rows][outcomes <= UNANSWERED].sum())
        exams = self.exam_counts(rows)

        def measure(value: float, chance: float | None = None, unit: Unit = Unit.SHARE, **more: Any) -> Measure:
            return Measure(value=value, n=n, chance=chance, unit=unit, **more) if n else Measure(unit=unit)

        share, cancelling = max(n, 1), None if self.scoring is None else self.scoring.cancelling
        measures: Measures = {
            "accuracy": measure(right / share, by_chance / share, interval=rate_interval(right, n)),
        }
        if cancelling is not None:
            chance = (by_chance - (n - by_chance) / cancelling) / share
            measures["exam_score"] = measure((right - wrong / cancelling) / share, chance)
        if cancelling is not None and self.has_exams:
            points = cancelling * exams[:, RIGHT] - exams[:, WRONG]
            size, chance = max(len(exams), 1), cancelling * by_chance - (n - by_chance)
            measures["points"] = measure(float(points.sum()) / size, chance / size, Unit.POINTS)
        measures["unanswered_ratio"] = measure(unanswered / share, interval=rate_interval(unanswered, n))
        if self.scoring is not None and self.scoring.as_headqa_v1:
            each = list(zip(exams[:, RIGHT].tolist(), exams.sum(axis=1).tolist(), strict=True))
            values = headqa_v1_accuracy(each), headqa_v1_points((3 * exams[:, RIGHT] - exams[:, WRONG]).tolist())
            for name, value in zip(("headqa_v1_accuracy", "headqa_v1_points"), values, strict=True):
                measures[name] = measure(value or 0.0, unit=Unit.POINTS)
        return Scores(**counts, exams=len(exams) if self.has_exams else None, measures=measures)

    def score_whole(self) -> Scores:
        """Score all questions, with the intervals that resample exams or questions."""
        scores = self.score()
        if self.scoring is None:
            return scores
        if self.has_exams:
            intervals = score_intervals(self.exam_counts(), self.scoring.cancelling)
        else:
            intervals = [question_interval(self.outcomes, self.scoring.cancelling)]
        # Without exams there are no points, and one interval.
        measures = {
            name: scores.measures[name].model_copy(update={"interval": interval, "resampled": kind})
            for name, (interval, kind) in zip(("exam_score", "points"), intervals, strict=False)
        }
        return scores.model_copy(update={"measures": scores.measures | measures})

    def score_by_facet(self) -> dict[str, dict[str, Scores]]:
        """Score the groups of each facet, in the order of their names; a facet without a group is left out."""
        grouped = {name: group_rows(values) for name, values in self.facets.items()}
        return {
            name: {str(group): self.score(rows) for group, rows in groups.items()}
            for name, groups in grouped.items()
            if groups
        }


def group_rows(values: Sequence[Hashable | None]) -> dict[Any, NDArray[np.intp]]:
    """Map each value, in ascending order, to the rows that have it; None is left out."""
    members: dict[Any, list[int]] = {}
    for place, value in enumerate(values):
        if value is not None:
            members.setdefault(value, []).append(place)
    return {value: np.array(members[value], dtype=np.intp) for value in sorted(members)}


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
    table = ItemTable.of(questions, key, predictions, scoring)
    return Metrics(
        **dict(table.score_whole()),
        by=table.score_by_facet(),
        evidence=measure_evidence(questions, key, predictions, None if scoring is None else scoring.cancelling),
        readings=_score_readings(table, questions, key, predictions),
        **count_costs((question.key for question in questions), predictions),
    )


def _score_readings(
    table: ItemTable, questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> dict[Reading, Scores] | None:
    """Score the questions as replies are read strictly and leniently; None if both are the same."""
    strict, lenient = table.outcomes.copy(), table.outcomes.copy()
    differs = False
    # One prediction at a time: all of a large run at once would not fit the memory.
    for place, question in enumerate(questions):
        prediction = predictions.get(question.key)
        if prediction is not None and prediction.lenient is not None:
            differs = True
            strict[place] = find_outcome(key[question.key], as_read(prediction, "strict"))
            lenient[place] = find_outcome(key[question.key], as_read(prediction, "lenient"))
    if not differs:
        return None
    return {"strict": replace(table, outcomes=strict).score(), "lenient": replace(table, outcomes=lenient).score()}


def _name_exams(exams: Mapping[Exam, int]) -> list[str]:
    """Name each exam; two exams of one name are told apart by year and discipline."""
    uses = Counter(exam.name for exam in exams)
    return [exam.name if uses[exam.name] == 1 else f"{exam.name} ({exam.discipline} {exam.year})" for exam in exams]
