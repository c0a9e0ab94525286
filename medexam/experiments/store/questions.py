"""The questions of a stored run, found again in the data set as it is today."""

from typing import overload

from medexam.datasets import ExamSet
from medexam.errors import DatasetError
from medexam.experiments.store.data_changes import DataChange, describe_texts, find_data_change
from medexam.experiments.store.run_folder import RunRecord
from medexam.questions import Question
from medexam.tasks import Task, TaskSet


@overload
def stored_questions(record: RunRecord, data: ExamSet) -> tuple[Question, ...]: ...
@overload
def stored_questions(record: RunRecord, data: TaskSet) -> tuple[Task, ...]: ...
def stored_questions(record: RunRecord, data: ExamSet | TaskSet) -> tuple[Question | Task, ...]:
    """The questions that the run was last asked for, in its order, without those that have lost their official answer.

    `data` is everything that the run's data set holds. Raises `DatasetError` where a question is gone, and where the
    texts are no longer those that the run was asked.
    """
    if find_data_change(record, data) is DataChange.TEXTS:
        raise DatasetError(
            f"run {record.run_id} cannot be scored anew: {describe_texts(record, data)}; restore "
            f"{record.dataset_source}, or run its spec again to ask the texts as they are"
        )
    known: dict[str, Question | Task] = {question.key: question for question in data.questions}
    withdrawn = frozenset(data.left_out) if isinstance(data, ExamSet) else frozenset()
    gone = [key for key in record.questions if key not in known and key not in withdrawn]
    if gone:
        raise DatasetError(
            f"{len(gone)} of {len(record.questions)} questions of run {record.run_id} are no longer in the data set "
            f"({gone[0]}): restore the file it was made from ({record.dataset_source}), or run the spec again"
        )
    return tuple(known[key] for key in record.questions if key in known)
