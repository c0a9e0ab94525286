"""Counts: how each question came out, summed over the exams and option counts that every breakdown is made of.

A cell is one exam's questions with one number of options; all breakdowns are sums of cells, so the questions are
walked through once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from medexam.answer_key import AnswerKey
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


def count(questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]) -> dict[Cell, Tally]:
    """The tally of each cell, in the order in which the cells first appear.

    Predictions for other questions are not looked at. Raises `DatasetError` when `key` lacks a question.
    """
    cells: dict[Cell, Tally] = {}
    for question in questions:
        cell = Cell(question.exam, len(question.options))
        tally = cells.get(cell)
        if tally is None:
            tally = cells[cell] = Tally()
        gold = key[question.key].number
        prediction = predictions.get(question.key)
        if prediction is None:
            tally.missing += 1
        elif prediction.status is Status.FAILED:
            tally.failed += 1
        elif prediction.status is Status.UNANSWERED:
            tally.unanswered += 1
        elif prediction.answer == gold:
            tally.right += 1
        else:
            tally.wrong += 1
    return cells


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum of tallies."""
    everything = Tally()
    for tally in tallies:
        everything.right += tally.right
        everything.wrong += tally.wrong
        everything.unanswered += tally.unanswered
        everything.failed += tally.failed
        everything.missing += tally.missing
    return everything


def scored_exams(cells: Mapping[Cell, Tally]) -> dict[Exam, Tally]:
    """The tally of each exam that has at least one scored question."""
    exams: dict[Exam, list[Tally]] = {}
    for cell, tally in cells.items():
        exams.setdefault(cell.exam, []).append(tally)
    summed = {exam: total(tallies) for exam, tallies in exams.items()}
    return {exam: tally for exam, tally in summed.items() if tally.n}
