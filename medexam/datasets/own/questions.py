"""Makes questions of the rows of any table by the columns that a spec names: of multiple choice, in words, or spans."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, product
from typing import Any, Literal

from medexam.datasets.exam_table import parse_image
from medexam.datasets.locating import find_own_file
from medexam.datasets.own.documents import SPLITS, Cells
from medexam.datasets.own.options import ReadOptions, read_answer_column, read_options, settle_options
from medexam.datasets.own.tables import (
    CellError,
    SourceTable,
    TableRow,
    open_text,
    read_file,
    read_own_table,
    split_faults,
    try_each,
    value_of,
)
from medexam.datasets.own.texts import find_named, unpack
from medexam.datasets.rows import Reading, Row, RowFault, TaskReading, TaskRow, parse_whole_number
from medexam.errors import DatasetError
from medexam.files import UnreadableError
from medexam.questions import Exam, Question, Task, TaskGold
from medexam.specs import DatasetSpec
from medexam.specs.dataset import ColumnsSpec, KeySpec
from medexam.text import nearest

STANDARD: Mapping[str, tuple[str, ...]] = {
    "stem": ("stem", "question"),
    "answer": ("answer", "answers"),
    **{name: (name,) for name in ("options", "context", "explanation", "image", "subject", "year", "exam")},
    "id": ("id",),
    "split": ("split",),
}
"""Field -> the columns that it is read from where the spec names none."""
KEYED = "answer of the key"
"""The column that a key in another file adds to a table."""
_MOST_BAD, _SHOWN = 0.05, 3
"""The share of the rows that `skip_bad: true` leaves out at most, and how many messages describe."""
_NUMBERED = re.compile(r"(\d+)\s*[-.):=\t ]\s*([A-Za-z*]|\d{1,2})(?=[\s,;]|$)[\s,;]*")


class Columns:
    """The columns of one table by the fields that are read from them."""

    def __init__(self, spec: ColumnsSpec, table: SourceTable, needed: Sequence[str]) -> None:
        """Raise `DatasetError` if the table lacks a column that the spec names, or one for a `needed` field."""
        self.by_field: dict[str, str | tuple[str, ...]] = {}
        """Field -> its column or columns; fields that are read from none are not in it."""
        self._exams: dict[tuple[object, ...], Exam] = {}
        self._times: Counter[str] = Counter()
        for field, standard in STANDARD.items():
            stated = getattr(spec, field)
            check_columns(columns_in(stated or ()), table, field)
            column = next((name for name in standard if name in table.columns), None) if stated is None else stated
            if field == "answer" and KEYED in table.columns:
                column = KEYED
            if column:
                self.by_field[field] = column
            elif field in needed:
                raise DatasetError(
                    f"{table.source}: has no column {' or '.join(standard)}: its columns are "
                    f"{', '.join(table.columns):.400}; say which with columns: {{{field}: ...}}, or see `medexam init`"
                )

    def shown(self, field: str) -> str:
        """Return the column of a field as messages call it."""
        return ", ".join(columns_in(self.by_field.get(field, field)))

    def value(self, record: Cells, field: str) -> Any:
        """Return the value of a field; a list if it has several columns, None if it has none or the cell is empty."""
        column = self.by_field.get(field)
        if column is None or isinstance(column, str):
            return None if column is None else value_of(record, column)
        return [value_of(record, name) for name in column]

    def text(self, record: Cells, field: str) -> str | None:
        """Return a field as text, lists as paragraphs; None if it is empty."""
        value = self.value(record, field)
        if value is None or isinstance(value, str):
            return value and value.strip()
        parts = value if isinstance(value, (list, tuple)) else [value]
        return "\n\n".join(str(part).strip() for part in parts if part is not None) or None

    def needed_text(self, record: Cells, field: str) -> str:
        """Return a field as text; raise `CellError` if it is empty."""
        text = self.text(record, field)
        if text is None:
            raise CellError(self.shown(field), "is empty")
        return text

    def exam(self, record: Cells) -> Exam:
        """Return a row's exam, or the group that stands for one; raise `CellError` for a year or split that is none."""
        subject, year = self.text(record, "subject") or "all", self.value(record, "year")
        number = parse_whole_number(year)
        if year is not None and number is None:
            raise CellError(self.shown("year"), f"is {year!r:.60}, not a year")
        name, split = self.text(record, "exam"), self.split(record)
        key = (subject, number, name, split)
        if key not in self._exams:
            stated = name or (subject if number is None else f"{subject} {number}")
            self._exams[key] = Exam(name=stated, year=number, discipline=subject, split=split, independent=name is None)
        return self._exams[key]

    def split(self, record: Cells) -> Literal["train", "dev", "test"] | None:
        """Return where the authors put a row; None if they do not say. Raise `CellError` for another word."""
        word = self.text(record, "split")
        if word is not None and word.strip().lower() not in SPLITS:
            raise CellError(self.shown("split"), f"is {word!r:.60}, not one of {', '.join(SPLITS)}")
        return None if word is None else SPLITS[word.strip().lower()]

    def key(self, record: Cells, texts: Iterable[str] = ()) -> str:
        """Return the row's id, or a hash of its texts. A number stands behind the hash if a row before has the same.

        Raises `CellError` for an id that is empty, or stands in a row before.
        """
        has_id = "id" in self.by_field
        key = self.needed_text(record, "id") if has_id else hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
        self._times[key] += 1
        if self._times[key] > 1 and has_id:
            raise CellError(self.shown("id"), f"is {key!r}, which an earlier row has too")
        return key if self._times[key] == 1 else f"{key}-{self._times[key]}"


def columns_in(value: Any) -> list[str]:
    """List the columns that a field names."""
    return [value] if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else []


def describe_bad(faults: Sequence[RowFault], rows: int) -> tuple[str, str]:
    """Describe how many of the rows are bad and what is wrong with the first of them; and advise what to do."""
    bad = len(faults)
    details = "; ".join(f"{fault.place}: {fault.detail}" for fault in faults[:_SHOWN])
    more = f"; and {bad - _SHOWN} more" if bad > _SHOWN else ""
    share = "true" if bad <= _MOST_BAD * rows else f"{math.ceil(100 * bad / rows) / 100:g}"
    advice = f"correct them, or set dataset.skip_bad: {share}"
    advice = advice if bad < rows else "no question remains: name other columns or another kind"
    return f"{bad:,} of {rows:,} rows {'is' if bad == 1 else 'are'} bad: {details}{more}", advice


def reading_notes(
    source: str, faults: Sequence[RowFault], rows: int, spec: DatasetSpec, unasked: int = 0
) -> tuple[str, ...]:
    """List what to know of a source: rows that are left out, and a size that is not the published one.

    `unasked` questions have several right answers, all of which must be named. Raises `DatasetError` if rows are bad
    and may not be left out, or if none remains.
    """
    most = _MOST_BAD if spec.skip_bad is True else float(spec.skip_bad)
    bad, advice = describe_bad(faults, rows) if faults else ("", "")
    if faults and (len(faults) > most * rows or len(faults) == rows):
        raise DatasetError(f"{source}: {bad}; {advice}")
    notes = [bad.replace(" bad:", " left out:", 1)] if faults else []
    if unasked:
        notes.append(f"{unasked:,} of {rows:,} questions are left out, because they need several answers at once")
    if spec.published is not None and spec.published.questions not in (None, rows):
        notes.append(f"{source} holds {rows:,} questions, and {spec.published.questions:,} are published")
    return tuple(notes)


def check_columns(columns: Iterable[str], table: SourceTable, field: str = "...") -> None:
    """Raise `DatasetError` for a column that a field names and the table lacks."""
    for column in columns:
        if not {column, column.partition(".")[0]} & {*table.columns}:
            near = nearest(column, table.columns, most=1)
            hint = f"did you mean {near!r}? " if near else ""
            raise DatasetError(
                f"{table.source}: columns.{field} is {column!r}, and there is no such column: {hint}its columns are "
                f"{', '.join(table.columns):.400}"
            )


def read_questions(spec: DatasetSpec) -> SourceTable:
    """Read the table of a spec, joined with its key and arranged; raise `DatasetError` if a file does not fit."""
    columns = spec.columns
    leave_out, as_above, ignored = columns.leave_out or {}, columns.as_above or (), columns.ignored or ()
    stated = {field: getattr(columns, field) for field in STANDARD}
    read = {field: STANDARD[field] if names is None else columns_in(names) for field, names in stated.items()}
    needed = {name for field, names in read.items() if field != "explanation" or spec.explained for name in names}
    needed |= {name.partition(".")[0] for name in [*needed, *leave_out, *as_above]}
    # What no question needs is much of the memory of a large table; any column may join a key.
    unread = {*read["explanation"], *ignored} - needed if spec.answers is None else ()
    table = add_key(read_own_table(spec, unread), spec.answers)
    check_columns([*as_above, *ignored, *leave_out], table)
    expected = {KEYED, *leave_out, *ignored, *chain(*read.values())}
    expected |= {name.partition(".")[0] for name in expected}
    extra = next((column for column in table.columns if column not in expected), None)
    if columns.ignored is not None and extra is not None:
        raise DatasetError(
            f"{table.source}: column {extra!r} is neither read nor listed in columns.ignored: name the field that it "
            "is read as, or add it there"
        )
    if not as_above and not leave_out:
        return table
    above, rows = dict[str, Any](), list[TableRow]()
    for row in table.rows:
        above |= {name: value for name in as_above if (value := value_of(row.record, name)) is not None}
        if not any(str(value_of(row.record, name)).strip() in values for name, values in leave_out.items()):
            rows.append(row.with_cells(above))
    count = len(table.rows) - len(rows)
    note = f"{count:,} of {len(table.rows):,} rows are left out by {', '.join(leave_out)}"
    return replace(table, rows=tuple(rows), notes=(note,) if count else ())


def add_key(table: SourceTable, key: KeySpec | None) -> SourceTable:
    """Add a column `KEYED` to the table, empty where the key has no answer; raise `DatasetError` if it does not fit.

    A column that names the same rows in both joins them, whether it is stated or not; else the order of rows does.
    """
    if key is None:
        return table
    stated = columns_in(key.on)
    names, answers = _read_key(key, stated[-1] if stated else None)
    check_columns(stated[:1], table, "answers.on")
    column, other = (stated[0], stated[-1]) if stated else _find_shared(table, names)
    advice = "name the column that both have with answers: {on: ...}"
    if column is None and len(answers) != len(table.rows):
        facts = f"holds {len(answers):,} answers, and {table.source} {len(table.rows):,} rows"
        raise DatasetError(f"{key.path}: {facts}: {advice}")
    if column is not None:
        rows, keys = _names(table, column), names.get(other, names.get("", ()))
        by_name = dict(zip(keys, answers, strict=False))
        if twice := [name for name, times in Counter(filter(None, rows)).items() if times > 1]:
            raise DatasetError(f"{table.source}: several rows have {column} {twice[0]!r}: make it unique")
        if twice := [name for name, answer in zip(keys, answers, strict=False) if by_name[name] != answer]:
            raise DatasetError(f"{key.path}: has two answers for {column} {twice[0]!r}: make it unique")
        if by_name.keys().isdisjoint(filter(None, rows)):
            examples = f"(such as {[*keys, ''][0]!r}) is in {table.source} (such as {rows[0]!r})"
            raise DatasetError(f"{key.path}: none of its {column} {examples}: {advice}")
        answers = [by_name.get(name) if name else None for name in rows]
    keyed = (row.with_cells({KEYED: answer}) for row, answer in zip(table.rows, answers, strict=True))
    return replace(table, columns=(*table.columns, KEYED), rows=tuple(keyed))


def _find_shared(table: SourceTable, names: Mapping[str, Sequence[str]]) -> tuple[str | None, str]:
    """Find a column of the table and one of the key that name the same rows, each once, those of one name first.

    Raises `DatasetError` if a column of the key names each of its rows, and these are not 1, 2, 3 and so on.
    """
    in_table = {column: _names(table, column) for column in table.columns} if names else {}
    for column, other in sorted(product(in_table, names), key=lambda pair: pair[0] != pair[1]):
        rows = in_table[column]
        if len({*rows}) == len(rows) == len(names[other]) and {*rows} == {*names[other]}:
            return column, other
    ordinals = [str(number) for number in range(1, len(table.rows) + 1)]
    for name, keys in names.items():
        if [*keys] != in_table.get(name, ordinals if len({*keys}) == len(keys) else keys):
            raise DatasetError(
                f"{table.source}: the key has {name or 'numbers'} in another order, and no column of the table holds "
                "all of them: name the column that joins them with answers: {on: ...}"
            )
    return None, ""


def _names(table: SourceTable, column: str) -> list[str]:
    """List what a column calls each row, numbers alike in both tables: 1, "001" and 1.0 are one."""
    texts = ["" if (name := value_of(row.record, column)) is None else str(name).strip() for row in table.rows]
    return [str(int(float(text))) if re.fullmatch(r"\d{1,15}(?:\.0)?", text) else text for text in texts]


def _read_key(key: KeySpec, on: str | None) -> tuple[Mapping[str, Sequence[str]], Sequence[Any]]:
    """Read a key: what may join it to the table, by column, "" for the numbers in a text; and its answers in order."""
    path = find_own_file(key.path)
    if path.suffix.lower() in (".txt", ".key", ""):
        try:
            with open_text(path) as stream:
                text = stream.read().strip()
        except (OSError, UnreadableError) as error:
            raise DatasetError(f"{path}: cannot be read: {error}") from None
        pairs = _NUMBERED.findall(text)
        if pairs and not _NUMBERED.sub("", text):
            return {"": [str(int(number)) for number, _ in pairs]}, [letter for _, letter in pairs]
        if on is not None or re.search(r"[A-Za-z]{2,}\s*[:=]|[^\sA-Za-z0-9,;]", text):
            raise DatasetError(f"{path}: holds {text!r:.40}, not only letters: write it as `1. B` on each line")
        return {}, re.findall(r"[A-Za-z0-9]", text)
    keys = read_file(path)
    others = [column for column in keys.columns if column != on]
    answer = [key.answer] if key.answer is not None else others if len(others) == 1 else find_named("answer", others)
    if len(answer) != 1 or not {answer[0], on or answer[0]} <= {*keys.columns}:
        advice = f"say which with answers: {{path: {path.name}, on: ..., answer: ...}}"
        raise DatasetError(f"{path}: its columns are {', '.join(keys.columns)}; {advice}")
    names = {column: _names(keys, column) for column in keys.columns if column != answer[0]}
    return names, [value_of(row.record, answer[0]) for row in keys.rows]


NO_PICTURE = ("false", "no", "0", "0.0", "none", "nan", "n/a", "-")
"""What a column of pictures says of a question without one."""


def read_choice_questions(spec: DatasetSpec) -> Reading:
    """Read the questions of a spec; rows that are none are faults, a table that is none is a `DatasetError`."""
    try:
        return parse_choice(read_questions(spec), spec)[0]
    except DatasetError:
        for columns in spec.published.layouts if spec.path is not None and spec.published is not None else ():
            with suppress(DatasetError):
                other = spec.model_copy(update={"columns": columns})
                return parse_choice(read_questions(other), other)[0]
        raise


def parse_choice(table: SourceTable, spec: DatasetSpec) -> tuple[Reading, str]:
    """Parse the questions of a table, and name the way of their answers; raise `DatasetError` for unclear columns."""
    columns = Columns(spec.columns, table, ("stem", "answer"))

    def read(row: TableRow) -> ReadOptions:
        stem = columns.needed_text(row.record, "stem")
        options = read_options(stem, columns.by_field.get("options"), row, spec.columns)
        options.answer = columns.value(row.record, "answer")
        if options.answer is None or options.answer == []:
            raise CellError(columns.shown("answer"), "is empty")
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

    source, notes, rows = table.source, table.notes, list(table.rows)
    # Of a large table, each row goes as its question comes.
    del table
    settled = settle_options(try_each(read, rows), spec.columns)
    options, _ = split_faults(settled)
    way, numbers = read_answer_column(options, spec.columns, columns.shown("answer")) if options else ("", ())
    del options
    golds = iter(numbers)
    return Reading(source, "own", *split_faults(try_each(make, settled)), notes=notes), way


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
        stem = columns.needed_text(row.record, "stem")
        context = (columns.needed_text if placed else columns.text)(row.record, "context") or ""
        value = unpack(columns.value(row.record, "answer"))
        value = value.get("text") if isinstance(value, Mapping) else value
        items = value if isinstance(value, (list, tuple)) else [value]
        texts = [each.get("text") if isinstance(each, Mapping) else each for each in items]
        answers = tuple("" if text is None else str(text).strip() for text in texts)
        if not all(answers) or not answers:
            raise CellError(columns.shown("answer"), "is empty")
        if lost := [answer for answer in answers if placed and answer not in context]:
            raise CellError(columns.shown("answer"), f"is {lost[0]!r:.60}, which the context does not contain")
        group, key = columns.text(row.record, "subject") or "all", columns.key(row.record, [context, stem])
        task = Task(key=key, group=group, language=spec.language, question=stem, context=context)
        return TaskRow(task, TaskGold(answers=answers), columns.split(row.record))

    return split_faults(try_each(read, list(table.rows)))
