"""Scoring run folders: after a run, and again at any later time, without asking a model.

The predictions hold no score, so a corrected gold or a new metric needs the data set and this module only.
"""

from collections import Counter
from dataclasses import replace

from medexam.datasets import ExamSet, load_exam_set, load_task_set
from medexam.errors import DatasetError, EngineError, MedExamError, RunBusyError, RunFolderError
from medexam.experiments.report.markdown import run_report
from medexam.experiments.report.task_report import task_report
from medexam.experiments.score.task_scorers import score_tasks
from medexam.experiments.store.data_changes import describe_golds
from medexam.experiments.store.freshness import DERIVED, Freshness, Say, read_sources, record_made
from medexam.experiments.store.parquet import write_parquet
from medexam.experiments.store.questions import stored_questions
from medexam.experiments.store.run_folder import METRICS, REPORT, RunFolder, RunRecord
from medexam.experiments.store.stored_run import (
    AnyMetrics,
    AnyRun,
    ExamRun,
    TaskRun,
    load_run,
    shown_as_scored,
    stored_run,
)
from medexam.experiments.store.task_export import write_task_parquet
from medexam.metrics import compute_metrics
from medexam.predictions import Status
from medexam.tasks import TaskSet

_DERIVED = ", ".join(DERIVED[:-1]) + f" and {DERIVED[-1]}"


def renew(folder: RunFolder, found: Freshness, say: Say) -> AnyRun:
    """The run in `folder`, whose derived files are out of date as `found` says: made anew, as `current_run` tells."""
    why = ", ".join(found.changed)
    try:
        try:
            with folder.locked():
                folder.merge_shards()
                record = folder.read_record()
                question_set = load_stored(record)
                corrected = describe_golds(folder, record, question_set)
                run = score_cell(folder, question_set)
        except RunBusyError:
            run = replace(rescore(folder), files_fresh=False)
            if run.complete:
                return run
            metrics = run.metrics
            note = f"another process is writing it, {metrics.n} of {metrics.selected} questions are scored so far"
            return replace(run, note=note)
        except RunFolderError as error:
            run = replace(rescore(folder), files_fresh=False)
            say(f"{folder.name}: {_DERIVED} are out of date ({why}) and stay so: {error}")
            return run
    except (DatasetError, EngineError) as error:
        return _as_scored(folder, found, error)
    say(corrected or f"{folder.name}: made {_DERIVED} anew: {why}")
    return run


def _as_scored(folder: RunFolder, found: Freshness, error: MedExamError) -> AnyRun:
    """The run as it was scored, where its numbers are those of its answers, although they cannot be made anew."""
    why = ", ".join(found.changed)
    try:
        run = load_run(folder)
    except RunFolderError:
        stands = False
    else:
        changed = found.answers_changed
        stands = _counts_agree(run) if changed is None else not changed
    if not stands:
        raise type(error)(f"the scores of run {folder.name} are out of date ({why}) and cannot be made anew: {error}")
    return replace(run, note=shown_as_scored(str(error)), files_fresh=False)


def _counts_agree(run: AnyRun) -> bool:
    """Whether metrics that do not tell what they were made from count what the folder holds now."""
    outcomes = run.folder.read_outcomes()
    counts = Counter(outcomes[key].status if key in outcomes else None for key in run.record.questions)
    metrics = run.metrics
    return (metrics.selected, metrics.unanswered, metrics.failed, metrics.missing) == (
        len(run.record.questions),
        counts[Status.UNANSWERED],
        counts[Status.FAILED],
        counts[None],
    )


def score_cell(folder: RunFolder, question_set: ExamSet | TaskSet) -> AnyRun:
    """Score the predictions in `folder` on all of these questions and write what is made of them.

    These are `metrics.json`, `report.md`, the Parquet file, and what they were made from; `spec.json` then says which
    questions and golds these were. The folder must be locked where others may write it. Raises `RunFolderError` where
    it cannot be written, and `EngineError` where what a benchmark is scored with is not installed.
    """
    _record_scored(folder, question_set)
    sources = read_sources(folder, question_set.files_digest)
    run: AnyRun
    if isinstance(question_set, TaskSet):
        run = _score_tasks(folder, question_set)
    else:
        run = _score_exams(folder, question_set)
    record_made(folder, sources)
    return run


def _record_scored(folder: RunFolder, question_set: ExamSet | TaskSet) -> None:
    record = folder.read_record()
    golds = None if record.schema == 1 else question_set.golds_fingerprint
    questions = tuple(question.key for question in question_set.questions)
    scored = replace(record, dataset_golds=golds, questions=questions)
    if scored != record:
        folder.write_record(scored)


def _score_exams(folder: RunFolder, exam_set: ExamSet) -> ExamRun:
    questions, key = exam_set.questions, exam_set.key
    with folder.opened_predictions() as predictions:
        metrics = compute_metrics(questions, key, predictions)
        folder.write_json(METRICS, metrics.model_dump(mode="json"))
        write_parquet(folder, questions, key, predictions)
        run = stored_run(folder, metrics, predictions if metrics.failed else {})
        folder.write_text(REPORT, run_report(run, predictions))
    return run


def _score_tasks(folder: RunFolder, task_set: TaskSet) -> TaskRun:
    with folder.opened_predictions() as predictions:
        scores = score_tasks(task_set, predictions)
        folder.write_json(METRICS, scores.metrics.model_dump(mode="json"))
        write_task_parquet(folder, task_set, predictions, scores)
        run = stored_run(folder, scores.metrics, predictions if scores.metrics.failed else {})
        folder.write_text(REPORT, task_report(run, predictions))
    return run


def rescore(folder: RunFolder) -> AnyRun:
    """The run in `folder`, scored anew on the data as they are today; nothing is written.

    Raises `DatasetError` where the data set cannot be read, lacks a question that was asked, or holds other texts.
    """
    question_set = load_stored(folder.read_record())
    metrics: AnyMetrics
    with folder.opened_predictions() as predictions:
        if isinstance(question_set, TaskSet):
            metrics = score_tasks(question_set, predictions).metrics
        else:
            metrics = compute_metrics(question_set.questions, question_set.key, predictions)
        return stored_run(folder, metrics, predictions if metrics.failed else {})


def load_stored(record: RunRecord) -> ExamSet | TaskSet:
    """The questions that a run was last asked for, with their golds.

    Raises `DatasetError` where the data set cannot be read, lacks one of them, or holds other texts.
    """
    if record.cell.dataset.holds_tasks:
        return load_stored_tasks(record)
    exam_set = load_exam_set(record.cell.dataset.whole)
    return replace(exam_set, questions=stored_questions(record, exam_set))


def load_stored_tasks(record: RunRecord) -> TaskSet:
    """The tasks that a run was last asked for; raises `DatasetError` as `stored_questions` does."""
    task_set = load_task_set(record.cell.dataset.whole)
    return replace(task_set, questions=stored_questions(record, task_set))
