"""Questions in other words, which the user gives in a table: each replaces the question with its key."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from medexam.datasets.altering.rows import Altered
from medexam.datasets.own.choice import read_choice_questions
from medexam.datasets.rows import Row
from medexam.errors import DatasetError
from medexam.questions import Language, Option
from medexam.specs import DatasetSpec


def paraphrase_rows(rows: Iterable[Row], path: Path, language: Language) -> Altered:
    """Reword every row that has a right answer and stands in the table at `path`, in the table's words.

    The table is read as multiple-choice questions of one's own, with the key in the column `id`. Contexts and pictures
    stay. Raises `DatasetError` if the table cannot be read, names a question that is none, or has other options or
    another right one.
    """
    reading = read_choice_questions(DatasetSpec(kind="choice", path=path, language=language)).reading
    if reading.faults:
        fault = reading.faults[0]
        raise DatasetError(f"{path}: {fault.place}: {fault.detail}: correct it")
    paraphrases = {row.question.key: row for row in reading.rows}
    row_by_key = {row.question.key: row for row in rows if row.gold is not None}
    if unknown := next((key for key in paraphrases if key not in row_by_key), None):
        raise DatasetError(
            f"{path}: {unknown} is not a key of the data set: the column id must hold keys as in predictions.jsonl"
        )
    altered_rows = tuple(
        _in_other_words(row, paraphrases[key], path) for key, row in row_by_key.items() if key in paraphrases
    )
    return Altered(
        altered_rows, tuple(key for key in row_by_key if key not in paraphrases), "the file has no paraphrase of them"
    )


def _in_other_words(row: Row, other: Row, path: Path) -> Row:
    question, paraphrase = row.question, other.question
    if len(paraphrase.options) != len(question.options):
        raise DatasetError(
            f"{path}: {question.key} has {len(paraphrase.options)} options, and the data set's question has "
            f"{len(question.options)}: give each option in the exam's order"
        )
    numbers = dict(zip(paraphrase.option_numbers, question.option_numbers, strict=True))
    if other.gold is None or numbers[other.gold] != row.gold:
        raise DatasetError(f"{path}: {question.key} has another right answer than the data set, option {row.gold}")
    options = tuple(Option(number=numbers[option.number], text=option.text) for option in paraphrase.options)
    return replace(row, question=question.model_copy(update={"stem": paraphrase.stem, "options": options}))
