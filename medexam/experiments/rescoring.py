"""Scoring run folders: after a run, and again at any later time, without asking a model.

The predictions hold no score, so a corrected gold or a new metric needs the data set and this module only.
"""

from collections.abc import Sequence
from dataclasses import replace

from medexam.answer_key import AnswerKey
from medexam.datasets import ExamSet, load_exam_set, load_task_set
from medexam.experiments.export import write_parquet
from medexam.experiments.markdown import run_report
from medexam.experiments.run_folder import METRICS, REPORT, RunFolder, RunRecord
from medexam.experiments.stored_questions import stored_questions
from medexam.experiments.summary import AnyRun, ExamRun, TaskRun, stored_run
from medexam.experiments.task_export import write_task_parquet
from medexam.experiments.task_report import task_report
from medexam.experiments.task_scoring import score_tasks
from medexam.metrics import compute_metrics
from medexam.questions import Question
from medexam.tasks import TaskSet


def score_cell(folder: RunFolder, question_set: ExamSet | TaskSet) -> AnyRun:
    """Score the predictions in `folder` on all of these questions, as `score_folder` and `score_task_folder` do.

    `spec.json` then says which questions and golds these were.
    """
    _record_scored(folder, question_set)
    if isinstance(question_set, TaskSet):
        return score_task_folder(folder, question_set)
    return score_folder(folder, question_set.questions, question_set.key)


def _record_scored(folder: RunFolder, question_set: ExamSet | TaskSet) -> None:
    record = folder.read_record()
    golds = None if record.schema == 1 else question_set.golds_fingerprint
    questions = tuple(question.key for question in question_set.questions)
    scored = replace(record, dataset_golds=golds, questions=questions)
    if scored != record:
        folder.write_record(scored)


def score_folder(folder: RunFolder, questions: Sequence[Question], key: AnswerKey) -> ExamRun:
    """Score the predictions in `folder` on `questions` and write `metrics.json`, the Parquet file and `report.md`.

    The folder must hold its `spec.json`. Raises `RunFolderError` where it cannot be written.
    """
    with folder.opened_predictions() as predictions:
        metrics = compute_metrics(questions, key, predictions)
        folder.write_json(METRICS, metrics.model_dump(mode="json"))
        write_parquet(folder, questions, key, predictions)
        run = stored_run(folder, metrics, predictions if metrics.failed else {})
        folder.write_text(REPORT, run_report(run, predictions))
    return run


def score_task_folder(folder: RunFolder, task_set: TaskSet) -> TaskRun:
    """Score the predictions in `folder` on these tasks and write the same files.

    Raises as `score_folder` does, and `MedExamError` where the scorer's model is not at hand.
    """
    with folder.opened_predictions() as predictions:
        scores = score_tasks(task_set, predictions)
        folder.write_json(METRICS, scores.metrics.model_dump(mode="json"))
        write_task_parquet(folder, task_set, predictions, scores)
        run = stored_run(folder, scores.metrics, predictions if scores.metrics.failed else {})
        folder.write_text(REPORT, task_report(run, predictions))
    return run


def rescore_any(folder: RunFolder) -> AnyRun:
    """The run in `folder`, whatever it asked, scored anew on the data as they are today; nothing is written.

    Raises `DatasetError` where the data set cannot be read, lacks a question that was asked, or holds other texts.
    """
    record = folder.read_record()
    if not record.cell.dataset.holds_tasks:
        return rescore(folder)
    task_set = load_stored_tasks(record)
    with folder.opened_predictions() as predictions:
        metrics = score_tasks(task_set, predictions).metrics
        return stored_run(folder, metrics, predictions if metrics.failed else {})


def load_stored_tasks(record: RunRecord) -> TaskSet:
    """The tasks that a run was last asked for; raises `DatasetError` as `stored_questions` does."""
    task_set = load_task_set(record.cell.dataset.whole)
    return replace(task_set, questions=stored_questions(record, task_set))


def rescore(folder: RunFolder) -> ExamRun:
    """The run in `folder`, scored anew on the data set as it is today; nothing is written.

    Raises `DatasetError` where the data set cannot be read, lacks a question that was asked, or holds other texts.
    """
    record = folder.read_record()
    exam_set = load_exam_set(record.cell.dataset.whole)
    questions = stored_questions(record, exam_set)
    with folder.opened_predictions() as predictions:
        metrics = compute_metrics(questions, exam_set.key, predictions)
        return stored_run(folder, metrics, predictions if metrics.failed else {})
