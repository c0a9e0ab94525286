"""Which column of a table a field is read from: the one that the spec names, or the one of the field's own name."""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from medexam.datasets.own.json_shapes import SPLITS, Cells
from medexam.datasets.own.tables import CellError, SourceTable, value_of
from medexam.datasets.rows import RowFault, parse_whole_number
from medexam.errors import DatasetError
from medexam.questions import Exam
from medexam.specs import DatasetSpec
from medexam.specs.columns import ColumnsSpec
from medexam.text import nearest

_FIELDS = ("options", "context", "explanation", "image", "subject", "year", "exam", "id", "split", "start")
STANDARD: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"stem": ("stem", "question"), "answer": ("answer", "answers"), **{name: (name,) for name in _FIELDS}}
)
"""Field -> the columns that it is read from where the spec names none."""
KEYED = "answer of the key"
"""The column that a key in another file adds to a table."""
UNGROUPED = "all"
"""The group of questions without a subject."""
FAULTS_SHOWN = 3
MOST_BAD = 0.05
"""The share of the rows that `skip_bad: true` leaves out at most."""


class Columns:
    """The columns of one table by the fields that are read from them."""

    def __init__(self, spec: ColumnsSpec, table: SourceTable, needed: Sequence[str]) -> None:
        """Raise `DatasetError` if the table lacks a column that the spec names, or one for a `needed` field."""
        self.spec = spec
        self._columns: dict[str, str | tuple[str, ...]] = {}
        self._exams: dict[tuple[object, ...], Exam] = {}
        self._times: dict[str, int] = {}
        for field, standard in STANDARD.items():
            stated = getattr(spec, field)
            check_columns((stated,) if stated and isinstance(stated, str) else stated or (), table, field)
            column = next((name for name in standard if name in table.columns), None) if stated is None else stated
            if field == "answer" and KEYED in table.columns:
                column = KEYED
            if column:
                self._columns[field] = column
            elif field in needed:
                raise DatasetError(
                    f"{table.source}: has no column {' or '.join(standard)}: its columns are {_list(table.columns)}; "
                    f"say which with columns: {{{field}: ...}}, or have it proposed by `medexam init`"
                )

    def of(self, field: str) -> str | tuple[str, ...] | None:
        """Return the column of a field, or the columns; None if there is none."""
        return self._columns.get(field)

    def shown(self, field: str) -> str:
        """Return the column of a field as messages call it."""
        column = self._columns.get(field, field)
        return column if isinstance(column, str) else ", ".join(column)

    def value(self, record: Cells, field: str) -> Any:
        """Return the value of a field; a list if it has several columns, None if it has none or the cell is empty."""
        column = self._columns.get(field)
        if column is None:
            return None
        return value_of(record, column) if isinstance(column, str) else [value_of(record, name) for name in column]

    def text(self, record: Cells, field: str) -> str | None:
        """Return a field as text, lists as paragraphs; None if it is empty."""
        value = self.value(record, field)
        parts = value if isinstance(value, (list, tuple)) else [value]
        return "\n\n".join(str(part).strip() for part in parts if part is not None) or None

    def needed_text(self, record: Cells, field: str) -> str:
        """Return a field as text; raise `CellError` if it is empty."""
        text = self.text(record, field)
        if text is None:
            raise CellError(self.shown(field), "is empty")
        return text

    def group(self, record: Cells) -> str:
        """Return what the scores of a row are grouped by."""
        return self.text(record, "subject") or UNGROUPED

    def exam(self, record: Cells) -> Exam:
        """Return the exam of a row, or the group that stands for one; raise `CellError` for a year or split that is
        none.
        """
        subject, year = self.group(record), self.value(record, "year")
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

    def key(self, record: Cells, texts: Iterable[str]) -> str:
        """Return the row's id, or a hash of its texts. A number stands behind the hash if a row before has the same.

        Raises `CellError` for an id that is empty, or stands in a row before.
        """
        has_id = "id" in self._columns
        key = self.needed_text(record, "id") if has_id else hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
        times = self._times[key] = self._times.get(key, 0) + 1
        if times > 1 and has_id:
            raise CellError(self.shown("id"), f"is {key!r}, which an earlier row has too")
        return key if times == 1 else f"{key}-{times}"


def describe_faults(faults: Sequence[RowFault], rows: int, adjective: str = "bad") -> str:
    """Describe how many of the rows cannot be asked, and what is wrong with the first of them."""
    details = "; ".join(f"{fault.place}: {fault.detail}" for fault in faults[:FAULTS_SHOWN])
    remainder = f"; and {len(faults) - FAULTS_SHOWN} more" if len(faults) > FAULTS_SHOWN else ""
    return f"{len(faults):,} of {rows:,} rows {'is' if len(faults) == 1 else 'are'} {adjective}: {details}{remainder}"


def advise_on_rows(bad: int, rows: int) -> str:
    """Advise what to do about rows that cannot be asked: to leave them out, unless none remains."""
    if bad == rows:
        return "no question remains: name other columns or another kind"
    share = "true" if bad <= MOST_BAD * rows else f"{math.ceil(100 * bad / rows) / 100:g}"
    return f"correct them, or set dataset.skip_bad: {share}"


def reading_notes(
    source: str, faults: Sequence[RowFault], rows: int, spec: DatasetSpec, unasked: int = 0
) -> tuple[str, ...]:
    """List what to know of a source: rows that are left out, and a size that is not the published one.

    `unasked` questions have several right answers, all of which must be named.

    Raises `DatasetError` if rows are bad and may not be left out, or if none remains.
    """
    most = MOST_BAD if spec.skip_bad is True else float(spec.skip_bad)
    if faults and (len(faults) > most * rows or len(faults) == rows):
        raise DatasetError(f"{source}: {describe_faults(faults, rows)}; {advise_on_rows(len(faults), rows)}")
    notes = [describe_faults(faults, rows, "left out")] if faults else []
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
                f"{_list(table.columns)}"
            )


def check_accounted(spec: ColumnsSpec, table: SourceTable) -> None:
    """Raise `DatasetError` for a column that is neither read nor listed as ignored."""
    columns = {KEYED, *(spec.ignored or ()), *(spec.leave_out or ())}
    for field, standard in STANDARD.items():
        stated = getattr(spec, field)
        columns |= {*standard} if stated is None else {stated} if isinstance(stated, str) else {*stated}
    columns |= {name.partition(".")[0] for name in columns}
    extra = next((column for column in table.columns if column not in columns), None)
    if extra is not None:
        raise DatasetError(
            f"{table.source}: column {extra!r} is neither read nor listed in columns.ignored: name the field that it "
            "is read as, or add it there"
        )


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 20 else f"{', '.join(names[:20])} and {len(names) - 20} more"
