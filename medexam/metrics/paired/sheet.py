"""The answers of several runs to the same questions, as arrays: what all paired statistics of a comparison count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from medexam.metrics.counting import RIGHT, Outcomes, find_outcomes
from medexam.predictions.prediction import Answered
from medexam.questions import AnswerKey, Exam, Question

NO_ANSWER = -(2**40)
"""Stands for a missing answer; no printed number is so small."""


@dataclass(frozen=True)
class Sheet:
    """Column j is question j in all that follows."""

    keys: Sequence[str]
    exams: NDArray[np.intp]
    """The number of each question's exam, from 0, in the order in which the exams first appear."""
    independent: NDArray[np.bool_]
    """Whether each question's exam is a group that stands for none: intervals resample questions one by one."""
    outcomes: Outcomes
    """Row i is run i: how each question came out."""
    answers: NDArray[np.int64]
    """Row i is run i: the printed number of each chosen option, or `NO_ANSWER`."""

    @classmethod
    def of(cls, questions: Sequence[Question], key: AnswerKey, runs: Sequence[Mapping[str, Answered]]) -> Self:
        """Build the sheet of questions that all `runs` predicted; raises `DatasetError` if `key` lacks one."""
        keys = [question.key for question in questions]
        # Most questions share one object as their exam, and to hash an exam takes long.
        numbers: dict[Exam, int] = {}
        exam_by_id = {id(question.exam): question.exam for question in questions}
        places = {exam_id: numbers.setdefault(exam, len(numbers)) for exam_id, exam in exam_by_id.items()}
        return cls(
            keys=keys,
            exams=np.array([places[id(question.exam)] for question in questions], dtype=np.intp),
            independent=np.array([question.exam.independent for question in questions], dtype=bool),
            outcomes=np.array([find_outcomes(keys, key, run) for run in runs]),
            answers=np.array(
                [[_number(run[question_key].answer) for question_key in keys] for run in runs], dtype=np.int64
            ),
        )

    def only(self, columns: Sequence[int]) -> Self:
        """Return the same of some questions."""
        indices = np.asarray(columns, dtype=np.intp)
        return type(self)(
            keys=[self.keys[column] for column in columns],
            exams=number_as_seen(self.exams[indices]),
            independent=self.independent[indices],
            outcomes=self.outcomes[:, indices],
            answers=self.answers[:, indices],
        )

    @property
    def right(self) -> NDArray[np.bool_]:
        """Row i is run i: whether it has each question right."""
        matches: NDArray[np.bool_] = self.outcomes == RIGHT
        return matches

    def pick(self, mask: NDArray[np.bool_]) -> tuple[str, ...]:
        """Return the keys of the questions that the mask selects, in their order."""
        return tuple(self.keys[column] for column in np.flatnonzero(mask).tolist())


def number_as_seen(values: NDArray[np.int64]) -> NDArray[np.intp]:
    """Replace equal values by equal numbers, from 0, in the order in which the values first appear."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _number(answer: int | None) -> int:
    return NO_ANSWER if answer is None else answer
