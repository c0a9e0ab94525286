"""From questions, golds and predictions to `Metrics`: a pure function, so a stored run can be scored again."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from medexam.distributions import rate_interval
from medexam.errors import DatasetError
from medexam.metrics.counting import (
    RIGHT,
    UNANSWERED,
    WRONG,
    Tally,
    TallyCell,
    chance_level,
    count,
    count_costs,
    find_outcome,
    find_outcomes,
    scored_exams,
    total,
)
from medexam.metrics.exam_averages import AVERAGES
from medexam.metrics.intervals import question_interval, score_intervals
from medexam.metrics.results import Metrics, PublishedScores, ReadScores, Scores
from medexam.model_calls import Reading
from medexam.predictions import Prediction
from medexam.predictions.evidence.kinds import measure_evidence
from medexam.predictions.prediction import as_read
from medexam.questions import AnswerKey, Exam, Question

G = TypeVar("G", int, str)
Cells = Mapping[TallyCell, Tally]


def compute_metrics(questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]) -> Metrics:
    """Score `predictions` (by question key) on exactly these `questions`.

    Questions whose prediction failed or is missing enter no score; `Metrics.complete` says whether there are any.
    Raises `DatasetError` if there is no question, or when `key` lacks one.
    """
    if not questions:
        raise DatasetError("no question is selected, so there is nothing to score; widen the selection of the data set")
    outcomes = find_outcomes([question.key for question in questions], key, predictions)
    cells = count(questions, key, outcomes)
    tally = total(cells.values())
    exams = scored_exams(cells)
    exam_score, points = score_intervals(list(exams.values()))
    if any(exam.independent for exam in exams):
        exam_score = question_interval(outcomes)
    names = _exam_names(cells)
    return Metrics(
        **_published(cells),
        exam_score_interval=exam_score[0],
        exam_score_resampled=exam_score[1],
        points_interval=points[0],
        points_resampled=points[1],
        unanswered_ratio_interval=rate_interval(tally.unanswered, tally.n),
        **count_costs((question.key for question in questions), predictions),
        by_exam={name: Scores(**_scores(group)) for name, group in _split(cells, lambda c: names[c.exam])},
        by_year={year: Scores(**_scores(group)) for year, group in _split(_dated(cells), lambda c: c.exam.year or 0)},
        by_discipline={
            discipline: PublishedScores(**_published(group))
            for discipline, group in _split(cells, lambda c: c.exam.discipline)
        },
        by_option_count={
            options: Scores(**_scores(group)) for options, group in _split(cells, lambda c: c.option_count)
        },
        **measure_evidence(questions, key, predictions),
        readings=_score_readings(questions, key, predictions),
    )


def _score_readings(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> dict[Reading, ReadScores] | None:
    """Count the outcomes as replies are read strictly and leniently; None if both are the same."""
    counts: dict[Reading, Counter[int]] = {reading: Counter() for reading in get_args(Reading)}
    differs = False
    # One prediction at a time: all of a large run at once would not fit the memory.
    for question in questions:
        if (prediction := predictions.get(question.key)) is not None:
            differs |= prediction.lenient is not None
            for reading, counter in counts.items():
                counter[find_outcome(key[question.key], as_read(prediction, reading))] += 1
    return {reading: _read_scores(counter) for reading, counter in counts.items()} if differs else None


def _read_scores(outcomes: Mapping[int, int]) -> ReadScores:
    right, wrong, unanswered = outcomes[RIGHT], outcomes[WRONG], outcomes[UNANSWERED]
    n = right + wrong + unanswered
    return ReadScores(
        right=right,
        wrong=wrong,
        unanswered=unanswered,
        accuracy=right / n,
        exam_score=(right - wrong / 3) / n,
        unanswered_ratio=unanswered / n,
    )


def _scores(cells: Cells) -> dict[str, Any]:
    tally = total(cells.values())
    chance = chance_level(cells)
    exams = scored_exams(cells).values()
    n = tally.n
    return {
        "selected": tally.selected,
        "n": n,
        "right": tally.right,
        "wrong": tally.wrong,
        "unanswered": tally.unanswered,
        "failed": tally.failed,
        "missing": tally.missing,
        "exams": len(exams),
        "accuracy": tally.right / n if n else None,
        "accuracy_interval": rate_interval(tally.right, n),
        "chance_accuracy": chance.accuracy,
        "exam_score": (tally.right - tally.wrong / 3) / n if n else None,
        "chance_exam_score": chance.exam_score,
        "points": sum(exam.points for exam in exams) / len(exams) if exams else None,
        "chance_points": chance.points,
        "unanswered_ratio": tally.unanswered / n if n else None,
    }


def _published(cells: Cells) -> dict[str, Any]:
    exams = scored_exams(cells).values()
    return _scores(cells) | {field: average.of(exams) for field, average in AVERAGES.items()}


def _dated(cells: Cells) -> Cells:
    """Select the cells of exams whose year is known."""
    return {cell: tally for cell, tally in cells.items() if cell.exam.year is not None}


def _split(cells: Cells, group_of: Callable[[TallyCell], G]) -> Iterable[tuple[G, dict[TallyCell, Tally]]]:
    groups: dict[G, dict[TallyCell, Tally]] = {}
    for cell, tally in cells.items():
        groups.setdefault(group_of(cell), {})[cell] = tally
    return sorted(groups.items())


def _exam_names(cells: Cells) -> dict[Exam, str]:
    """Name each exam; two exams of one name are told apart by year and discipline."""
    exams = {cell.exam for cell in cells}
    uses = Counter(exam.name for exam in exams)
    return {
        exam: exam.name if uses[exam.name] == 1 else f"{exam.name} ({exam.discipline} {exam.year})" for exam in exams
    }
