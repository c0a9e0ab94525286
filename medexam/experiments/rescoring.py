"""Scoring run folders: after a run, and again at any later time, without asking a model.

The predictions hold no score, so a corrected gold or a new metric needs the data set and this module only.
"""

from collections.abc import Sequence

from medexam.answer_key import AnswerKey
from medexam.datasets import load_exam_set
from medexam.experiments.export import write_parquet
from medexam.experiments.markdown import run_report
from medexam.experiments.run_folder import METRICS, REPORT, RunFolder
from medexam.experiments.stored_questions import stored_questions
from medexam.experiments.summary import StoredRun, stored_run
from medexam.metrics import compute_metrics
from medexam.questions import Question


def score_folder(folder: RunFolder, questions: Sequence[Question], key: AnswerKey) -> StoredRun:
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


def rescore(folder: RunFolder) -> StoredRun:
    """The run in `folder`, scored anew on the data set as it is today; nothing is written.

    Raises `DatasetError` where the data set cannot be read or lacks a question that was asked.
    """
    record = folder.read_record()
    exam_set = load_exam_set(record.cell.dataset)
    questions = stored_questions(record, exam_set)
    with folder.opened_predictions() as predictions:
        metrics = compute_metrics(questions, exam_set.key, predictions)
        return stored_run(folder, metrics, predictions if metrics.failed else {})
