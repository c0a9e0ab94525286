"""Makes questions of the rows of any table: of multiple choice, in words, or about a part of their context."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import zip_longest
from typing import Any

from medexam.datasets.exam_table import parse_image
from medexam.datasets.own.answers import read_answer_column
from medexam.datasets.own.columns import Columns, read_questions, reading_notes
from medexam.datasets.own.options import ReadOptions, read_options, settle_options
from medexam.datasets.own.tables import CellError, Record, SourceTable, TableRow, try_each
from medexam.datasets.own.texts import unpack
from medexam.datasets.rows import Reading, Row, RowFault, TaskReading, TaskRow, parse_whole_number
from medexam.errors import DatasetError
from medexam.questions import Question, Task, TaskGold
from medexam.specs import DatasetSpec

NO_PICTURE = ("false", "no", "0", "0.0", "none", "nan", "n/a", "-")
"""What a column of pictures says of a question without one."""


def read_choice_questions(spec: DatasetSpec) -> Reading:
    """Read the questions of a spec; rows that are none are faults, a table that is none is a `DatasetError`."""
    table = read_questions(spec)
    try:
        return parse_choice(table, spec)[0]
    except DatasetError:
        for columns in spec.published.layouts if spec.path is not None and spec.published is not None else ():
            with suppress(DatasetError):
                return parse_choice(table, spec.model_copy(update={"columns": columns}))[0]
        raise


def parse_choice(table: SourceTable, spec: DatasetSpec) -> tuple[Reading, str]:
    """Parse the questions of a table, and name the way of their answers; raise `DatasetError` for unclear columns."""
    columns = Columns(spec.columns, table, ("stem", "answer"))

    def read(row: TableRow) -> ReadOptions:
        if isinstance(row.record, str):
            raise CellError("", row.record)
        return read_options(columns.needed_text(row.record, "stem"), columns.by_field.get("options"), row, spec.columns)

    def answer(options: ReadOptions) -> ReadOptions:
        value = columns.value(options.row.record, "answer")
        if value is None or value == []:
            raise CellError(columns.shown("answer"), "is empty")
        options.answer = value
        return options

    def make(options: ReadOptions) -> Row:
        numbers, texts = next(golds), options.texts
        if numbers is None:
            detail = (
                f"is {options.answer!r:.60}, which names none of its {len(texts)} options ({' / '.join(texts):.80})"
            )
            raise CellError(columns.shown("answer"), detail)
        question = _make_question(columns, options, spec)
        unasked = spec.columns.several == "all" and len(numbers) > 1
        return Row(question, None) if unasked else Row(question, numbers[0], numbers[1:])

    answered = try_each(answer, settle_options(try_each(read, table.rows), spec.columns))
    options = [each for each in answered if isinstance(each, ReadOptions)]
    way, numbers = read_answer_column(options, spec.columns, columns.shown("answer")) if options else ("", ())
    golds = iter(numbers)
    rows, faults = table.split_faults(try_each(make, answered))
    return Reading(table.source, table.folder, "own", rows, faults, notes=table.notes), way


def _make_question(columns: Columns, options: ReadOptions, spec: DatasetSpec) -> Question:
    record = options.row.record
    context = columns.text(record, "context")
    texts = [context or "", options.stem, *options.texts]
    if spec.explained:
        context = "\n\n".join([*filter(None, [context]), columns.needed_text(record, "explanation")])
    image = columns.value(record, "image")
    is_one = isinstance(image, Mapping) or (isinstance(image, str) and image.strip().casefold() not in NO_PICTURE)
    # Checked with its options at once, which takes half the time.
    return Question.model_validate(
        {
            "key": columns.key(record, texts),
            "exam": columns.exam(record),
            "number": options.row.number,
            "language": spec.language,
            "stem": options.stem,
            "options": tuple({"number": place, "text": text} for place, text in enumerate(options.texts, start=1)),
            "image": parse_image(image if is_one else None),
            "context": context,
        }
    )


def read_word_questions(spec: DatasetSpec) -> TaskReading:
    """Read the questions of a spec; raise `DatasetError` if rows are bad and may not be left out."""
    table = read_questions(spec)
    rows, faults = parse_words(table, spec)
    notes = (*table.notes, *reading_notes(table.source, faults, len(rows) + len(faults), spec))
    return TaskReading(source=table.source, version="own", rows=rows, notes=notes)


def parse_words(table: SourceTable, spec: DatasetSpec) -> tuple[tuple[TaskRow, ...], tuple[RowFault, ...]]:
    """Parse questions answered in words, and what is wrong with other rows; raise `DatasetError` without a column."""
    placed = spec.kind == "spans"
    columns = Columns(spec.columns, table, ("stem", "answer", "context") if placed else ("stem", "answer"))

    def read(row: TableRow) -> TaskRow:
        if isinstance(row.record, str):
            raise CellError("", row.record)
        stem = columns.needed_text(row.record, "stem")
        context = (columns.needed_text if placed else columns.text)(row.record, "context") or ""
        answers = tuple(_answers(columns, row.record, context, placed=placed))
        if not answers:
            raise CellError(columns.shown("answer"), "is empty")
        group, key = columns.text(row.record, "subject") or "all", columns.key(row.record, [context, stem])
        task = Task(key=key, group=group, language=spec.language, question=stem, context=context)
        return TaskRow(task, TaskGold(answers=answers), columns.split(row.record))

    return table.split_faults(try_each(read, table.rows))


def _answers(columns: Columns, record: Record, context: str, *, placed: bool) -> Iterator[str]:
    """Yield the right answers; those that are `placed` have to stand in the context, where the row says."""
    value: Any = unpack(columns.value(record, "answer"))
    starts: Any = columns.value(record, "start")
    if isinstance(value, Mapping):
        starts, value = value.get("answer_start"), value.get("text")
    lists = [each if isinstance(each, (list, tuple)) else [] if each is None else [each] for each in (value, starts)]
    pairs: Iterable[tuple[Any, Any]] = zip_longest(lists[0], lists[1][: len(lists[0])])
    for item, start in pairs:
        if isinstance(item, Mapping):
            start, item = item.get("answer_start"), item.get("text")
        answer = "" if item is None else str(item).strip()
        if not answer:
            raise CellError(columns.shown("answer"), f"holds {item!r:.60}, which is no text")
        if placed and answer not in context:
            raise CellError(columns.shown("answer"), f"is {answer!r:.60}, which the context does not contain")
        place = parse_whole_number(start) if placed else None
        passage = answer if place is None else context[place : place + len(answer)]
        if passage != answer:
            detail = f"is {place}, where {passage!r:.40} stands: {answer!r:.40} is at {context.find(answer)}"
            raise CellError(columns.shown("start"), detail)
        yield answer
