"""Reads questions of one's own that are answered in words, or by a part of their context, from any table."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from medexam.datasets.own.columns import Columns, reading_notes
from medexam.datasets.own.keys import read_questions
from medexam.datasets.own.tables import CellError, Record, SourceTable
from medexam.datasets.own.texts import unpack
from medexam.datasets.rows import RowFault, TaskReading, TaskRow, parse_whole_number
from medexam.questions import Task, TaskGold
from medexam.specs import DatasetSpec

VERSION = "own"


def read_word_questions(spec: DatasetSpec) -> TaskReading:
    """Read the questions of a spec; raise `DatasetError` if rows are bad and may not be left out."""
    table = read_questions(spec)
    rows, faults = parse_words(table, spec)
    total = len(rows) + len(faults)
    notes = (*table.notes, *reading_notes(table.source, faults, total, spec))
    return TaskReading(source=table.source, version=VERSION, rows=rows, notes=notes)


def parse_words(table: SourceTable, spec: DatasetSpec) -> tuple[tuple[TaskRow, ...], tuple[RowFault, ...]]:
    """Parse the questions of a table, and what is wrong with the other rows; raise `DatasetError` if a column is
    missing.
    """
    needed = ("stem", "answer", "context") if spec.kind == "spans" else ("stem", "answer")
    columns = Columns(spec.columns, table, needed)
    rows: list[TaskRow] = []
    faults: list[RowFault] = []
    for row in table.rows:
        try:
            if isinstance(row.record, str):
                raise CellError("", row.record)
            rows.append(_row(columns, row.record, spec))
        except CellError as error:
            faults.append(row.fault(error))
    return tuple(rows), tuple(faults)


def _row(columns: Columns, record: Record, spec: DatasetSpec) -> TaskRow:
    question = columns.needed_text(record, "stem")
    context = columns.needed_text(record, "context") if spec.kind == "spans" else columns.text(record, "context") or ""
    answers = tuple(_answers(columns, record, context, placed=spec.kind == "spans"))
    if not answers:
        raise CellError(columns.shown("answer"), "is empty")
    key = columns.key(record, [context, question])
    task = Task(key=key, group=columns.group(record), language=spec.language, question=question, context=context)
    return TaskRow(task, TaskGold(answers=answers), columns.split(record))


def _answers(columns: Columns, record: Record, context: str, *, placed: bool) -> Iterator[str]:
    """Yield the texts of the right answers; those that are `placed` have to stand in the context, where the row
    says.
    """
    value = unpack(columns.value(record, "answer"))
    starts = columns.value(record, "start")
    if isinstance(value, Mapping):
        starts = value.get("answer_start")
        value = value.get("text")
    for item, start in zip_longest(_list(value), _list(starts)[: len(_list(value))]):
        text = item.get("text") if isinstance(item, Mapping) else item
        stated = item.get("answer_start") if isinstance(item, Mapping) else start
        answer = "" if text is None else str(text).strip()
        if not answer:
            raise CellError(columns.shown("answer"), f"holds {item!r:.60}, which is no text")
        if placed:
            _check_place(columns, context, answer, stated)
        yield answer


def _check_place(columns: Columns, context: str, text: str, stated: object) -> None:
    if text not in context:
        raise CellError(columns.shown("answer"), f"is {text!r:.60}, which the context does not contain")
    start = parse_whole_number(stated)
    passage = text if start is None else context[start : start + len(text)]
    if passage != text:
        detail = f"is {start}, where {passage!r:.40} stands: {text!r:.40} is at {context.find(text)}"
        raise CellError(columns.shown("start"), detail)


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
