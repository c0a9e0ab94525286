"""Reads multiple-choice questions of one's own from any table."""

from contextlib import suppress
from typing import Any

from medexam.datasets.exam_table import parse_image
from medexam.datasets.own.answers import RawAnswer, read_answer_column
from medexam.datasets.own.columns import Columns
from medexam.datasets.own.keys import read_questions
from medexam.datasets.own.options import ReadOptions, Settled, change_each, read_options, settle_options
from medexam.datasets.own.tables import CellError, Record, SourceTable, TableRow
from medexam.datasets.rows import Reading, Row, RowFault
from medexam.errors import DatasetError
from medexam.questions import Question
from medexam.specs import DatasetSpec

NO_PICTURE = ("false", "no", "0", "0.0", "none", "nan", "n/a", "-")
"""What a column of pictures says of a question without one."""


def read_choice_questions(spec: DatasetSpec) -> Reading:
    """Read the questions of a spec; rows that are none are faults. Raise `DatasetError` if the table as a whole is
    none.
    """
    table = read_questions(spec)
    layouts = spec.published.layouts if spec.path is not None and spec.published is not None else ()
    try:
        return parse_choice(table, spec)[0]
    except DatasetError:
        for columns in layouts:
            with suppress(DatasetError):
                return parse_choice(table, spec.model_copy(update={"columns": columns}))[0]
        raise


def parse_choice(table: SourceTable, spec: DatasetSpec) -> tuple[Reading, str]:
    """Parse the questions of a table as `spec` says, and name the way in which their answers were read.

    Raises `DatasetError` if a column is missing or ambiguous.
    """
    by_sign = bool(spec.columns.right_mark) and spec.columns.answer is None
    columns = Columns(spec.columns, table, ("stem",) if by_sign else ("stem", "answer"))
    faults: dict[int, RowFault] = {}
    answered: list[tuple[TableRow, RawAnswer]] = []
    for row, options in zip(table.rows, read_all_options(table, columns), strict=True):
        try:
            if isinstance(options, CellError):
                raise options
            value = _answer_of(columns, row.record, options, by_sign=by_sign)  # type: ignore[arg-type]
            answered.append((row, RawAnswer(row.place, value, options)))
        except CellError as error:
            faults[row.number] = row.fault(error)
    how = spec.columns.model_copy(update={"answer_as": "one_hot"}) if by_sign else spec.columns
    raws = [raw for _, raw in answered]
    way, golds = read_answer_column(raws, how, columns.shown("answer")) if raws else ("", ())
    rows: list[Row] = []
    for (row, raw), numbers in zip(answered, golds, strict=True):
        try:
            if numbers is None:
                texts = raw.options.texts
                detail = f"is {raw.value!r:.60}, which names none of its {len(texts)} options ({' / '.join(texts):.80})"
                raise CellError(columns.shown("answer"), detail)
            question = _make_question(columns, row, raw.options, spec)
            unasked = spec.columns.several == "all" and len(numbers) > 1
            rows.append(Row(question, None) if unasked else Row(question, numbers[0], numbers[1:]))
        except CellError as error:
            faults[row.number] = row.fault(error)
    in_order = tuple(faults[number] for number in sorted(faults))
    return Reading(table.source, table.folder, "own", tuple(rows), in_order, notes=table.notes), way


def read_all_options(table: SourceTable, columns: Columns) -> list[Settled]:
    """Read the options of each row, or what is wrong with them; raise `DatasetError` if letters before them are
    unclear.
    """

    def read(row: TableRow) -> ReadOptions:
        if isinstance(row.record, str):
            raise CellError("", row.record)
        stem = columns.needed_text(row.record, "stem")
        if columns.spec.choices is not None:
            return ReadOptions(stem, columns.spec.choices, None)
        return read_options(stem, columns.of("options"), row.record, columns.spec)

    return settle_options(change_each(read, table.rows), columns.spec)


def _answer_of(columns: Columns, record: Record, options: ReadOptions, *, by_sign: bool) -> Any:
    """Return what a row says is right; raise `CellError` if it says nothing."""
    if by_sign:
        if options.right is None or True not in options.right:
            raise CellError(options.column, f"marks no option with {columns.spec.right_mark!r}")
        return list(options.right)
    answer = columns.value(record, "answer")
    if answer is None or answer == []:
        raise CellError(columns.shown("answer"), "is empty")
    return answer


def _make_question(columns: Columns, row: TableRow, options: ReadOptions, spec: DatasetSpec) -> Question:
    record: Any = row.record
    context = columns.text(record, "context")
    texts = [context or "", options.stem, *options.texts]
    if spec.explained:
        explanation = columns.needed_text(record, "explanation")
        context = explanation if context is None else f"{context}\n\n{explanation}"
    # Checked with its options at once, which takes half the time.
    return Question.model_validate(
        {
            "key": columns.key(record, texts),
            "exam": columns.exam(record),
            "number": row.number,
            "language": spec.language,
            "stem": options.stem,
            "options": tuple({"number": place, "text": text} for place, text in enumerate(options.texts, start=1)),
            "image": _image(columns.value(record, "image")),
            "context": context,
        }
    )


def _image(value: Any) -> str | None:
    is_none = isinstance(value, str) and value.strip().casefold() in NO_PICTURE
    return parse_image(value if isinstance(value, (str, dict)) and not is_none else None)
