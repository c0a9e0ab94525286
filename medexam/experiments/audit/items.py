"""The answers of stored runs as people are to judge them; read from run folders and data sets, nothing is asked."""

from collections import Counter
from collections.abc import Iterator, Sequence

from medexam.answer_key import AnswerKey
from medexam.datasets import ExamSet, load_exam_set
from medexam.errors import SpecError
from medexam.experiments.report.derived import load_stored_tasks
from medexam.experiments.score.task_scorers import score_tasks
from medexam.experiments.store.questions import stored_questions
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.metrics.audit import AuditItem
from medexam.predictions import Prediction, Status
from medexam.questions import Question
from medexam.signatures.rendering import render_question
from medexam.specs import DatasetSpec
from medexam.tasks import Task, TaskGold


def read_audit_items(folders: Sequence[RunFolder]) -> list[AuditItem]:
    """Every answer in words that the runs in `folders` hold, in the order of the runs and of their questions.

    What a program reasoned is part of its answer. Questions whose asking failed are left out. Raises `SpecError` where
    two runs share an id or a run holds no reply, and `DatasetError` where a data set cannot be read or lacks one.
    """
    records = [folder.read_record() for folder in folders]
    _check_ids(records)
    sets: dict[DatasetSpec, ExamSet] = {}
    items: list[AuditItem] = []
    for folder, record in zip(folders, records, strict=True):
        dataset = record.cell.dataset.whole
        if dataset.holds_tasks:
            found = list(_task_items(folder, record))
        else:
            if dataset not in sets:
                sets[dataset] = load_exam_set(dataset)
            found = list(_exam_items(folder, record, sets[dataset]))
        if not found:
            raise SpecError(
                f"run {record.run_id} holds no reply to judge ({record.cell.program.label}): leave it out, and name "
                "runs of programs that have a model write, such as chain_of_thought"
            )
        items += found
    return items


def _check_ids(records: Sequence[RunRecord]) -> None:
    (run_id, times), *_ = Counter(record.run_id for record in records).most_common(1)
    if times > 1:
        raise SpecError(f"two of the folders hold run {run_id}: name each run once")


def _exam_items(folder: RunFolder, record: RunRecord, exams: ExamSet) -> Iterator[AuditItem]:
    questions = stored_questions(record, exams)
    with folder.opened_predictions() as predictions:
        for question in questions:
            prediction = predictions.get(question.key)
            if prediction is None or prediction.status is Status.FAILED or prediction.reply is None:
                continue
            yield _exam_item(record.run_id, question, exams.key, prediction, prediction.reply)


def _task_items(folder: RunFolder, record: RunRecord) -> Iterator[AuditItem]:
    """Answers in words, with every measure that tells one from another."""
    data = load_stored_tasks(record)
    with folder.opened_predictions() as predictions:
        scores = score_tasks(data, predictions).items
        for task in data.questions:
            prediction = predictions.get(task.key)
            if prediction is None or prediction.status is Status.FAILED or prediction.reply is None:
                continue
            yield AuditItem(
                key=task.key,
                run=record.run_id,
                group=task.group,
                question=_show_task(task),
                reference=_expected(task, data.golds[task.key]),
                reply=prediction.text if prediction.text is not None else prediction.reply,
                scores={name: of[task.key] for name, of in scores.items() if task.key in of},
            )


def _show_task(task: Task) -> str:
    parts = (task.context, task.question, "\n".join(task.options), task.given_answer, "\n".join(task.given_reasoning))
    return "\n\n".join(part for part in parts if part)


def _expected(task: Task, gold: TaskGold) -> str:
    """What the answer should be; of the inverse formats the explanation, for their answer is the wrong one shown."""
    if task.given_answer:
        return "\n".join((*gold.incorrect_step, gold.incorrect_explanation)).strip()
    return "\n".join(gold.answers)


def _exam_item(run: str, question: Question, key: AnswerKey, prediction: Prediction, reply: str) -> AuditItem:
    gold = key[question.key].number
    right = next(option for option in question.options if option.number == gold)
    scores = {"accuracy": float(prediction.answer == gold)}
    probabilities = prediction.option_probabilities
    if probabilities is not None and prediction.answer in probabilities:
        scores["probability"] = probabilities[prediction.answer]
    return AuditItem(
        key=question.key,
        run=run,
        group=question.exam.discipline.value,
        question=render_question(question),
        reference=f"{right.number}. {right.text}",
        reply=reply,
        scores=scores,
    )
