"""What a page tells of each question: what every run was asked and what it answered.

Where a data set is not on this machine, the run folder alone has to do: the exam and gold of each question stand in
`predictions.parquet`. The questions' words do not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from medexam.answer_key import AnswerKey
from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.questions import as_asked
from medexam.experiments.store.run_folder import PARQUET
from medexam.experiments.store.stored_run import ExamRun
from medexam.items import ExamSet
from medexam.predictions import Prediction
from medexam.questions import Question
from medexam.specs import DatasetSpec

_COLUMNS = ("question", "exam", "year", "discipline", "number", "language", "gold")


@dataclass(frozen=True)
class Asked:
    """One question as one run was asked it."""

    key: str
    exam: str | None
    """None, like every field below, where nothing on this machine tells it."""
    year: int | None
    discipline: str | None
    number: int | None
    """The number printed in the booklet."""
    language: str
    gold: int | None
    question: Question | None
    """None where the data set is not at hand."""


@dataclass(frozen=True)
class Answers:
    """One run, question by question."""

    name: str
    """What tells the run from the others of the page."""
    asked: Mapping[str, Asked]
    """By key, in the run's order."""
    predictions: Mapping[str, Prediction]
    """By key; a question that is not asked yet has none."""
    without_texts: str | None
    """Why the words of the questions are not at hand; None where they are."""


def read_answers(runs: Sequence[ExamRun]) -> list[Answers]:
    """What each of `runs` was asked and answered, in their order; each data set is read once."""
    sets: dict[DatasetSpec, ExamSet | DatasetError] = {}
    found = []
    for run, name in zip(runs, run_names(runs), strict=True):
        spec = run.record.cell.dataset.whole
        if spec not in sets:
            sets[spec] = _load(spec)
        found.append(_answers(run, name, sets[spec]))
    return found


def _load(spec: DatasetSpec) -> ExamSet | DatasetError:
    try:
        return load_exam_set(spec)
    except DatasetError as error:
        return error


def _answers(run: ExamRun, name: str, exam_set: ExamSet | DatasetError) -> Answers:
    predictions = run.folder.read_predictions()
    try:
        if isinstance(exam_set, DatasetError):
            raise exam_set
        questions = as_asked(run.record, exam_set).questions
    except DatasetError as error:
        return Answers(name, _asked_of_folder(run), predictions, str(error))
    return Answers(name, _asked_of_questions(questions, exam_set.golds), predictions, None)


def _asked_of_questions(questions: Sequence[Question], key: AnswerKey) -> dict[str, Asked]:
    return {
        question.key: Asked(
            key=question.key,
            exam=question.exam.name,
            year=question.exam.year,
            discipline=question.exam.discipline.value,
            number=question.number,
            language=question.language,
            gold=key[question.key].number,
            question=question,
        )
        for question in questions
    }


def _asked_of_folder(run: ExamRun) -> dict[str, Asked]:
    """What the run folder tells of each question that was asked; nothing but its key where it has no Parquet file."""
    try:
        rows = pq.read_table(run.folder.path / PARQUET, columns=list(_COLUMNS)).to_pylist()
    except (OSError, pa.ArrowException):
        rows = []
    known = {row["question"]: row for row in rows}
    language = run.record.cell.dataset.language
    nothing = dict.fromkeys(_COLUMNS[1:]) | {"language": language}
    found = {}
    for key in run.record.questions:
        row = known.get(key, nothing)
        found[key] = Asked(key=key, question=None, **{name: row[name] for name in _COLUMNS[1:]})
    return found
