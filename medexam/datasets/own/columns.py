"""Which column of a table a field is read from, and which rows are asked: joined with a key, without those left out."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal

from medexam.datasets.locating import find_own_file
from medexam.datasets.own.documents import SPLITS, Cells
from medexam.datasets.own.names import find_named
from medexam.datasets.own.tables import CellError, SourceTable, open_text, read_file, read_own_table, value_of
from medexam.datasets.rows import RowFault, parse_whole_number
from medexam.errors import DatasetError
from medexam.files import UnreadableError
from medexam.questions import Exam
from medexam.specs import DatasetSpec
from medexam.specs.dataset import ColumnsSpec, KeySpec
from medexam.text import nearest

_FIELDS = ("options", "context", "explanation", "image", "subject", "year", "exam", "id", "split", "start")
STANDARD: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"stem": ("stem", "question"), "answer": ("answer", "answers"), **{name: (name,) for name in _FIELDS}}
)
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

    def key(self, record: Cells, texts: Iterable[str]) -> str:
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
    table, columns = read_own_table(spec), spec.columns
    table = table if spec.answers is None else add_key(table, spec.answers)
    leave_out, as_above, ignored = columns.leave_out or {}, columns.as_above or (), columns.ignored
    check_columns([*as_above, *(ignored or ()), *leave_out], table)
    stated = {field: getattr(columns, field) for field in STANDARD}
    read = [STANDARD[field] if names is None else columns_in(names) for field, names in stated.items()]
    names = {*chain(*read), *leave_out, *(ignored or ()), KEYED}
    names |= {name.partition(".")[0] for name in names}
    extra = next((column for column in table.columns if column not in names), None)
    if ignored is not None and extra is not None:
        raise DatasetError(
            f"{table.source}: column {extra!r} is neither read nor listed in columns.ignored: name the field that it "
            "is read as, or add it there"
        )
    above: dict[str, Any] = {}
    rows = []
    for row in table.rows if as_above or leave_out else ():
        above |= {name: value for name in as_above if (value := value_of(row.record, name)) is not None}
        if not any(str(value_of(row.record, name)).strip() in values for name, values in leave_out.items()):
            rows.append(row.with_cells(above))
    if not as_above and not leave_out:
        return table
    count = len(table.rows) - len(rows)
    note = f"{count:,} of {len(table.rows):,} rows are left out by {', '.join(leave_out)}"
    return replace(table, rows=tuple(rows), notes=(note,) if count else ())


def add_key(table: SourceTable, key: KeySpec) -> SourceTable:
    """Add a column `KEYED` to the table, empty where the key has no answer; raise `DatasetError` if it does not fit.

    A column that names the same rows in both joins them, whether it is stated or not; else the order of rows does.
    """
    stated = columns_in(key.on)
    names, answers = _read_key(key, stated[-1] if stated else None)
    check_columns(stated[:1], table, "answers.on")
    column, other = (stated[0], stated[-1]) if stated else _find_shared(table, names)
    advice = "name the column that both have with answers: {on: ...}"
    if column is None and len(answers) != len(table.rows):
        raise DatasetError(
            f"{key.path}: holds {len(answers):,} answers, and {table.source} {len(table.rows):,} rows: {advice}"
        )
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
    for column in sorted(table.columns, key=lambda column: column not in names):
        rows = _names(table, column)
        for other in (column,) if column in names else names:
            if len({*rows}) == len(rows) == len(names[other]) and {*rows} == {*names[other]}:
                return column, other
    ordinals = [str(number) for number in range(1, len(table.rows) + 1)]
    for name, keys in names.items():
        in_order = _names(table, name) if name in table.columns else ordinals if len({*keys}) == len(keys) else keys
        if [*keys] != [*in_order]:
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
            text = open_text(path).read().strip()
        except (OSError, UnreadableError) as error:
            raise DatasetError(f"{path}: cannot be read: {error}") from None
        pairs = _NUMBERED.findall(text)
        if pairs and not _NUMBERED.sub("", text):
            return {"": [str(int(number)) for number, _ in pairs]}, [letter for _, letter in pairs]
        if on is not None or re.search(r"[A-Za-z]{2,}\s*[:=]|[^\sA-Za-z0-9,;]", text):
            raise DatasetError(
                f"{path}: holds {text!r:.40}, which is more than numbers and letters: write it as `1. B` on each line"
            )
        return {}, re.findall(r"[A-Za-z0-9]", text)
    keys = read_file(path)
    others = [column for column in keys.columns if column != on]
    called = find_named("answer", others)
    candidates = [key.answer] if key.answer is not None else others if len(others) == 1 else called
    if len(candidates) != 1 or not {candidates[0], on or candidates[0]} <= {*keys.columns}:
        raise DatasetError(
            f"{path}: its columns are {', '.join(keys.columns)}; say which with answers: {{path: {path.name}, on: ..., "
            "answer: ...}"
        )
    names = {column: _names(keys, column) for column in keys.columns if column != candidates[0]}
    return names, [value_of(row.record, candidates[0]) for row in keys.rows]
