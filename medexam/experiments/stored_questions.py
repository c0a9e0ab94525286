"""The questions of a stored run, found again in the data set as it is today."""

from collections.abc import Iterable
from typing import TypeVar

from medexam.datasets import ExamSet
from medexam.errors import DatasetError
from medexam.experiments.run_folder import RunRecord
from medexam.questions import Question
from medexam.tasks import Task

Q = TypeVar("Q", Question, Task)


def stored_questions(record: RunRecord, exam_set: ExamSet) -> tuple[Question, ...]:
    """The questions that the run was last asked for, in its order; raises `DatasetError` where one is gone."""
    return find_stored(record, exam_set.questions)


def find_stored(record: RunRecord, questions: Iterable[Q]) -> tuple[Q, ...]:
    """Those of `questions` that the run was last asked for, in its order; raises `DatasetError` where one is gone."""
    known = {question.key: question for question in questions}
    gone = [key for key in record.questions if key not in known]
    if gone:
        raise DatasetError(
            f"{len(gone)} of {len(record.questions)} questions of run {record.run_id} are no longer in the data set "
            f"({gone[0]}): restore the file it was made from ({record.dataset_source}), or run the spec again"
        )
    return tuple(known[key] for key in record.questions)
