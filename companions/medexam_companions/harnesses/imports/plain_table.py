"""A plain table of answers: `question` with `answer`, or with `correct`, in CSV, JSON Lines, Parquet or Excel.

`question` is our key or the question's text; a column `key` may hold the key beside the text. `answer` is the printed
number, the letter or the text of an option; an empty one is no answer. `correct` is 1 or 0. A column called as answers
of models are, such as `prediction`, is one; beside `answer`, which may then be the key, the user says which. Any other
column is left alone.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medexam.datasets import SourceTable, read_file
from medexam.errors import DatasetError
from medexam_companions.harnesses.imports.document import read_option_texts
from medexam_companions.harnesses.imports.samples import HarnessSample, Results, ResultsError, read_verdict

_MODELS = re.compile(
    r"(?:model|llm|predicted|generated|system|pred|output)[ _-]?(?:answer|choice|option|letter|label)s?"
    r"|(?:.+[ _-])?(?:predictions?|predicted|pred|chosen|choice|guess|responses?|outputs?|completions?)"
    r"|(?!(?:correct|right|gold|true|reference|expected|target|ground[ _-]truth)[ _-]).+[ _-]answers?",
    re.IGNORECASE,
)
"""Names of columns with a model's answers, such as `gpt4_answer` and `response`, and not `correct_answer`."""


def read_plain_table(path: Path, measure: str | None) -> list[Results]:
    """Read the answers of one table, those in the column `measure` if it is named.

    Raises `ResultsError` if it cannot be read or lacks a column, or if several may hold the answers.
    """
    try:
        table = read_file(path)
    except DatasetError as error:
        raise ResultsError(str(error)) from None
    answers = [column for column in table.columns if column == "answer" or _MODELS.fullmatch(column.strip())]
    if measure is not None and measure != "correct" and measure in table.columns:
        answers = [measure]
    if len(answers) > 1 and measure is None:
        raise ResultsError(
            f"{path}: the columns {' and '.join(answers)} may hold the model's answers, and one of them may be the "
            f"key: name the model's column, such as --measure {answers[-1]}"
        )
    by_answer = bool(answers) and measure != "correct"
    if "question" not in table.columns or not (by_answer or "correct" in table.columns):
        raise ResultsError(
            f"{path}: is not a known file of results. A table needs the columns question and answer, or question and "
            f"correct; this one has {', '.join(table.columns[:20])}. `medexam import --help` names the other files"
        )
    name = path.name.removesuffix(".gz").rpartition(".")[0]
    column = answers[0] if by_answer else "correct"
    models = {_text(row.record, "model") for row in table.rows if not isinstance(row.record, str)}
    model = models.pop() if len(models) == 1 else None
    return [Results("table", name, column, list(_samples(table, column)), "table", model=model)]


def _samples(table: SourceTable, answer: str) -> Iterator[HarnessSample]:
    for row in table.rows:
        if isinstance(row.record, str):
            raise ResultsError(f"{table.source}, {row.place}: {row.record}")
        question = _text(row.record, "question")
        if question is None:
            raise ResultsError(f"{table.source}, {row.place}: question is empty")
        yield HarnessSample(
            ids=tuple(filter(None, (_text(row.record, "key"), question))),
            stem=question,
            options=read_option_texts(row.record),
            choice=_text(row.record, answer if answer != "correct" else "answer"),
            right=_verdict(row.record, f"{table.source}, {row.place}") if answer in ("answer", "correct") else None,
            reply=_text(row.record, "reply"),
        )


def _verdict(record: Mapping[str, Any], place: str) -> bool | None:
    value = _text(record, "correct")
    verdict = read_verdict(value)
    if verdict is None and value is not None:
        raise ResultsError(f"{place}: correct is {value!r:.60}: write 1 or 0")
    return verdict


def _text(record: Mapping[str, Any], column: str) -> str | None:
    value: Any = record.get(column)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)
