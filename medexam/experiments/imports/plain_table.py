"""A plain table of answers: `question` with `answer`, or with `correct`, in CSV, JSON Lines, Parquet or Excel.

`question` is our key or the question's text; a column `key` may hold the key beside the text. `answer` is the printed
number, the letter or the text of an option; an empty one is no answer. `correct` is 1 or 0. Any other column is left
alone.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medexam.datasets.own.tables import Record, SourceTable, read_file
from medexam.errors import DatasetError
from medexam.experiments.imports.document import read_options
from medexam.experiments.imports.samples import Results, ResultsError, Sample

_VERDICTS: Mapping[str, bool] = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "right", "correct", "c"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "wrong", "incorrect", "i"), False),
}


def read_plain_table(path: Path) -> list[Results]:
    """The answers of one table; raises `ResultsError` if it cannot be read or lacks a column."""
    try:
        table = read_file(path)
    except DatasetError as error:
        raise ResultsError(str(error)) from None
    by_answer = "answer" in table.columns
    if "question" not in table.columns or not (by_answer or "correct" in table.columns):
        raise ResultsError(
            f"{path}: is no file of results that is known: it needs the columns question and answer, or question and "
            f"correct, and its columns are {', '.join(table.columns[:20])}; or give a samples_*.jsonl of "
            "lm-evaluation-harness or Every Eval Ever, a log of Inspect, a scenario_state.json of HELM, predictions of "
            "OpenCompass, reviews of EvalScope, details of lighteval or an *_allresults.json of simple-evals"
        )
    name = path.name.removesuffix(".gz").rpartition(".")[0]
    return [Results("table", name, "answer" if by_answer else "correct", list(_samples(table)), model=_model(table))]


def _samples(table: SourceTable) -> Iterator[Sample]:
    for row in table.rows:
        if isinstance(row.record, str):
            raise ResultsError(f"{table.source}, {row.place}: {row.record}")
        question = _text(row.record, "question")
        if question is None:
            raise ResultsError(f"{table.source}, {row.place}: question is empty")
        yield Sample(
            ids=tuple(filter(None, (_text(row.record, "key"), question))),
            stem=question,
            options=read_options(row.record),
            chosen=_text(row.record, "answer"),
            right=_verdict(row.record, f"{table.source}, {row.place}"),
            reply=_text(row.record, "reply"),
        )


def _verdict(record: Record, place: str) -> bool | None:
    said = _text(record, "correct")
    if said is None:
        return None
    if said.strip().lower() not in _VERDICTS:
        raise ResultsError(f"{place}: correct is {said!r:.60}: write 1 or 0")
    return _VERDICTS[said.strip().lower()]


def _text(record: Record, column: str) -> str | None:
    value: Any = record.get(column)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def _model(table: SourceTable) -> str | None:
    """The model that every row names in a column `model`; None if they name none or several."""
    named = {_text(row.record, "model") for row in table.rows if not isinstance(row.record, str)}
    return named.pop() if len(named) == 1 else None
