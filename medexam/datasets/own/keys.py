"""The right answers of a table that stand apart from its questions: in another file, or as a list."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from medexam.datasets.locating import find_own_file
from medexam.datasets.own.columns import KEYED, check_accounted, check_columns
from medexam.datasets.own.formats import open_text
from medexam.datasets.own.tables import SourceTable, read_file, read_own_table, value_of
from medexam.errors import DatasetError
from medexam.inputs import UnreadableError
from medexam.specs import DatasetSpec
from medexam.specs.columns import ColumnsSpec, KeySpec

_NUMBERED = re.compile(r"(\d+)\s*[-.):=\t ]\s*([A-Za-z*]|\d{1,2})(?=[\s,;]|$)[\s,;]*")


def read_questions(spec: DatasetSpec) -> SourceTable:
    """Read the table of a spec with the answers of its key; raise `DatasetError` if one cannot be read or does not
    fit.
    """
    table = read_own_table(spec)
    return _arrange(table if spec.answers is None else add_key(table, spec.answers), spec.columns)


def _arrange(table: SourceTable, spec: ColumnsSpec) -> SourceTable:
    """Fill empty cells that mean the one above, and leave out the rows that are not asked."""
    leave_out = spec.leave_out or {}
    check_columns([*(spec.as_above or ()), *(spec.ignored or ()), *leave_out], table)
    if spec.ignored is not None:
        check_accounted(spec, table)
    above: dict[str, Any] = {}
    rows = []
    for row in table.rows:
        cells = {name: value_of(row.record, name) for name in (*(spec.as_above or ()), *leave_out)}
        above |= {name: cells[name] for name in spec.as_above or () if cells[name] is not None}
        if any(str(cells[name]).strip() in values for name, values in leave_out.items()):
            continue
        rows.append(replace(row, record={**row.record, **above}) if isinstance(row.record, Mapping) and above else row)
    count = len(table.rows) - len(rows)
    note = f"{count:,} of {len(table.rows):,} rows are left out by {', '.join(leave_out)}"
    return replace(table, rows=tuple(rows), notes=(note,) if count else ())


def add_key(table: SourceTable, key: KeySpec) -> SourceTable:
    """Add a column `KEYED` to the table, empty where the key has no answer; raise `DatasetError` if it does not fit.

    A column that both have joins them, whether it is stated or not; rows are joined in order only without one.
    """
    source = "dataset.answers" if key.path is None else str(key.path)
    column, other = (key.on, key.on) if key.on is None or isinstance(key.on, str) else (key.on[0], key.on[-1])
    names, answers = _read_key(key, other)
    if column is None:
        column, other = _find_shared(table, names)
    else:
        check_columns((column,), table, "answers.on")
    if column is None:
        if len(answers) != len(table.rows):
            raise DatasetError(
                f"{source}: holds {len(answers):,} answers, and {table.source} {len(table.rows):,} rows: name the "
                "column that both have with answers: {on: ...}"
            )
        return _with_answers(table, answers)
    rows, keys = _names(table, column), names.get(other or "") or names.get("")
    if keys is None:
        raise DatasetError(f"{source}: holds answers alone, which no column joins: leave out answers.on")
    by_name = dict(zip(keys, answers, strict=True))
    for name, times in Counter(filter(None, rows)).items():
        if times > 1:
            raise DatasetError(f"{table.source}: several rows have {column} {name!r}: make it unique")
    for name, answer in zip(keys, answers, strict=True):
        if by_name[name] != answer:
            raise DatasetError(f"{source}: has two answers for {column} {name!r}: make it unique")
    if by_name.keys().isdisjoint(filter(None, rows)):
        raise DatasetError(
            f"{source}: none of its {column} (such as {keys[0]!r}) is in {table.source} (such as {rows[0]!r}): name "
            "the column that both have with answers: {on: ...}"
        )
    return _with_answers(table, [by_name.get(name) if name else None for name in rows])


def _find_shared(table: SourceTable, names: Mapping[str, Sequence[str]]) -> tuple[str | None, str | None]:
    """Find a column of the table and one of the key that name the same rows, each once, those of one name first.

    Raises `DatasetError` if a key is in another order or counts otherwise, and nothing names each row of both.
    """
    for column in sorted(table.columns, key=lambda column: column not in names):
        rows = _names(table, column)
        for other in (column,) if column in names else names:
            if len({*rows}) == len(rows) == len(names[other]) and {*rows} == {*names[other]}:
                return column, other
    counted = [str(number) for number in range(1, len(table.rows) + 1)]
    for name, keys in names.items():
        if [*keys] != (_names(table, name) if name in table.columns else counted if name == "" else [*keys]):
            raise DatasetError(
                f"{table.source}: the key has {name or 'numbers'} in another order, and no column of the table holds "
                "all of them: name the column that joins them with answers: {on: ...}"
            )
    return None, None


def _names(table: SourceTable, column: str) -> list[str]:
    """List what a column calls each row, numbers alike in both tables: 1, "001" and 1.0 are one."""
    texts = ["" if (name := value_of(row.record, column)) is None else str(name).strip() for row in table.rows]
    return [str(int(float(text))) if re.fullmatch(r"\d{1,15}(?:\.0)?", text) else text for text in texts]


def _with_answers(table: SourceTable, answers: Sequence[Any]) -> SourceTable:
    rows = tuple(
        row if isinstance(row.record, str) else replace(row, record={**row.record, KEYED: answer})
        for row, answer in zip(table.rows, answers, strict=True)
    )
    return replace(table, columns=(*table.columns, KEYED), rows=rows)


def _read_key(key: KeySpec, on: str | None) -> tuple[Mapping[str, Sequence[str]], Sequence[Any]]:
    """Read a key: what may join it to the table, by column, "" for the numbers in a text; and its answers in order."""
    if key.path is None:
        return {}, list(key.given or ())
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
    called = [column for column in others if column.lower() in ("answer", "key", "correct")]
    repeated = [column for column in others if len({*_names(keys, column)}) < len(keys.rows)]
    candidates = [key.answer] if key.answer is not None else others if len(others) == 1 else called or repeated
    if len(candidates) != 1 or not {candidates[0], on or candidates[0]} <= {*keys.columns}:
        raise DatasetError(
            f"{path}: its columns are {', '.join(keys.columns)}; say which with answers: {{path: {path.name}, on: ..., "
            "answer: ...}"
        )
    names = {column: _names(keys, column) for column in keys.columns if column != candidates[0]}
    return names, [value_of(row.record, candidates[0]) for row in keys.rows]
