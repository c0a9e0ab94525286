"""A translated exam as a table of exams in Parquet, and sheets for those who review it.

Pictures go along if the source holds their bytes; otherwise their names do. Reviewers give adequacy and fluency from 1
to 5, as 60 questions were judged for Vilares and Gómez-Rodríguez (2019); each fills in a copy.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam import Question
from medexam.datasets import Pictures, render_record, write_exam_table
from medexam.errors import DatasetError
from medexam.files import write_whole
from medexam.questions import AnswerKey
from medexam_companions.audit.review_sheets import COMMENT, Review, render_sheet
from medexam_companions.audit.review_sheets import load_review_sheets as read_sheets
from medexam_companions.translation.layout import QuestionText, render_layout

SHEET_QUESTIONS = 60
"""As many as Vilares and Gómez-Rodríguez (2019) had reviewed."""
ASPECTS = ("adequacy", "fluency")
"""Adequacy: how much of the meaning is there. Fluency: how well it reads. 1 is worst, 5 is best."""
ITEM = "question"
COLUMNS = (ITEM, "source", "translation", *ASPECTS, COMMENT)


def write_translation(
    path: Path,
    questions: Sequence[Question],
    key: AnswerKey,
    texts: Mapping[str, QuestionText],
    *,
    origin: str,
    pictures: Pictures | None = None,
) -> int:
    """Write those of `questions` that `texts` has words for, with these words; returns how many they are.

    `origin` says in the file what it was made from. The file is written whole or not at all. Raises `DatasetError`
    where it cannot be written.
    """
    records = [
        _record(question, key[question.key].number, texts[question.key], pictures)
        for question in questions
        if question.key in texts
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_exam_table(path, records, origin, with_pictures=bool(pictures))
    except OSError as error:
        raise DatasetError(
            f"cannot write {path} ({error.strerror or error}): choose another folder with --out"
        ) from None
    return len(records)


def _record(question: Question, gold: int, text: QuestionText, pictures: Pictures | None) -> dict[str, Any]:
    exam = question.exam
    image: Any = question.image
    if pictures is not None:
        reference = None if question.image is None else {"bytes": None, "path": question.image}
        image = pictures.get((exam.name, question.number), reference)
    return render_record(exam, question.number, text.stem, text.options, gold, image)


def write_sheet(path: Path, sources: Sequence[QuestionText], translations: Mapping[str, QuestionText]) -> None:
    """Write a sheet of these questions, the marks empty; raises `DatasetError` if it cannot be written."""
    rows = [
        (source.key, render_layout(source), render_layout(translations[source.key]), *[""] * (len(ASPECTS) + 1))
        for source in sources
    ]
    try:
        write_whole(path, render_sheet(COLUMNS, rows))
    except OSError as error:
        raise DatasetError(
            f"cannot write {path} ({error.strerror or error}): choose another file with --sheet"
        ) from None


def read_reviews(paths: Sequence[Path]) -> tuple[Review, ...]:
    """Read the sheets at `paths`; raise `DatasetError` naming the line that is wrong, or two sheets of one name."""
    return read_sheets(paths, ITEM, ASPECTS)
