"""The right answers of a table that stand apart from its questions: in another file, or as a list."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medexam.datasets.locating import find_own_file
from medexam.datasets.own.columns import KEYED, check_accounted, check_columns
from medexam.datasets.own.tables import SourceTable, read_file, read_own_table, value_of
from medexam.errors import DatasetError
from medexam.inputs import UnreadableError, decode, read_bytes
from medexam.specs import DatasetSpec
from medexam.specs.columns import ColumnsSpec, KeySpec

_TEXTS = (".txt", ".key", "")
"""Endings of files that hold a letter for each question, perhaps behind its number."""
_NUMBERED = re.compile(r"(\d+)\s*[-.):=\t ]\s*([A-Za-z*]|\d{1,2})(?=[\s,;]|$)[\s,;]*")
_LETTERS = re.compile(r"[A-Za-z0-9]")


def read_questions(spec: DatasetSpec) -> SourceTable:
    """Read the table of a spec with the answers of its key; raise `DatasetError` if one cannot be read or does not
    fit.
    """
    table = read_own_table(spec)
    return arrange_rows(table if spec.answers is None else add_key(table, spec.answers), spec.columns)


def arrange_rows(table: SourceTable, spec: ColumnsSpec) -> SourceTable:
    """Fill empty cells that mean the one above, and leave out the rows that are not asked.

    Raises `DatasetError` if the table lacks a column that is named for that, or has one that is not accounted for.
    """
    columns = [column for value in (spec.as_above, spec.ignored) for column in value or ()]
    check_columns([*columns, *(spec.leave_out or ())], table)
    if spec.ignored is not None:
        check_accounted(spec, table)
    above: dict[str, Any] = {}
    rows = []
    for row in table.rows:
        record = row.record
        if not isinstance(record, str):
            for column in spec.as_above or ():
                above[column] = above.get(column) if value_of(record, column) is None else value_of(record, column)
            marks = ((value_of(record, column), values) for column, values in (spec.leave_out or {}).items())
            if any(mark is not None and str(mark).strip() in values for mark, values in marks):
                continue
            row = replace(row, record={**record, **above}) if above else row
        rows.append(row)
    if len(rows) == len(table.rows):
        return replace(table, rows=tuple(rows))
    count = len(table.rows) - len(rows)
    note = f"{count:,} of {len(table.rows):,} rows are left out by {', '.join(spec.leave_out or ())}"
    return replace(table, rows=tuple(rows), notes=(note,))


def add_key(table: SourceTable, key: KeySpec) -> SourceTable:
    """Add a column `KEYED` to the table, empty where the key has no answer; raise `DatasetError` if it does not fit.

    A column that both have joins them, whether it is stated or not; rows are joined in order only where there is none.
    """
    source = "dataset.answers" if key.path is None else str(key.path)
    column, other = (key.on, key.on) if key.on is None or isinstance(key.on, str) else (key.on[0], key.on[-1])
    if column is not None:
        check_columns((column,), table, "answers.on")
    names, answers = _read_key(key, other)
    joined = (
        _find_shared(table, names)
        if column is None
        else (column, other if other is not None and other in names else "")
    )
    if joined is None:
        if len(answers) != len(table.rows):
            raise DatasetError(
                f"{source}: holds {len(answers):,} answers, and {table.source} {len(table.rows):,} rows: name the "
                "column that both have with answers: {on: ...}"
            )
        return _with_answers(table, answers)
    column, other = joined
    if other not in names:
        raise DatasetError(f"{source}: holds answers alone, which no column joins: leave out answers.on")
    by_name: dict[str, Any] = {}
    for name, answer in zip(names[other], answers, strict=True):
        if by_name.setdefault(name, answer) != answer:
            raise DatasetError(f"{source}: has two answers for {column} {name!r}: make it unique")
    by_name.pop("", None)
    rows = _names(table, column)
    if by_name.keys().isdisjoint(rows):
        raise DatasetError(
            f"{source}: none of its {column} (such as {next(iter(by_name), None)!r}) is in {table.source} (such as "
            f"{rows[0]!r}): name the column that both have with answers: {{on: ...}}"
        )
    twice, times = Counter(filter(None, rows)).most_common(1)[0]
    if times > 1:
        raise DatasetError(
            f"{table.source}: several rows have {column} {twice!r}: make it unique, so that the key names one row"
        )
    return _with_answers(table, [by_name.get(name) for name in rows])


def _find_shared(table: SourceTable, names: Mapping[str, Sequence[str]]) -> tuple[str, str] | None:
    """Find a column of the table and one of the key that name the same rows, each once, those of one name first.

    Raises `DatasetError` if a key is in another order or counts otherwise, and nothing names each row of both.
    """
    for column in sorted(table.columns, key=lambda column: column not in names):
        rows = _names(table, column)
        for other in (column,) if column in names else names:
            if len({*rows}) == len(rows) == len(names[other]) and {*rows} == {*names[other]}:
                return column, other
        if column in names and rows != [*names[column]]:
            raise DatasetError(
                f"{table.source}: the key has {column} too, and its rows are others or in another order: name the "
                "column that joins them with answers: {on: ...}"
            )
    numbers = names.get("")
    if numbers and [*numbers] != [str(number) for number in range(1, len(numbers) + 1)]:
        raise DatasetError(
            f"{table.source}: the key's numbers, such as {numbers[0]}, do not count the rows, and no column holds "
            "them: name it with answers: {on: ...}"
        )
    return None


def _names(table: SourceTable, column: str) -> list[str]:
    return [_plain(value_of(row.record, column)) for row in table.rows]


def _with_answers(table: SourceTable, answers: Sequence[Any]) -> SourceTable:
    rows = tuple(
        row if isinstance(row.record, str) else replace(row, record={**row.record, KEYED: answer})
        for row, answer in zip(table.rows, answers, strict=True)
    )
    return replace(table, columns=(*table.columns, KEYED), rows=rows)


def _read_key(key: KeySpec, join_column: str | None) -> tuple[Mapping[str, Sequence[str]], Sequence[Any]]:
    """Read a key: what may join it to the table, by column, "" for the numbers in a text; and its answers in order."""
    if key.path is None:
        return {}, list(key.given or ())
    path = find_own_file(key.path)
    if path.suffix.lower() in _TEXTS:
        numbers, letters = _read_letters(path, numbered=join_column is not None)
        return {"": numbers} if numbers else {}, letters
    keys = read_file(path)
    names = {column: _names(keys, column) for column in keys.columns if column != key.answer}
    others = [column for column in keys.columns if column != join_column]
    candidates = [column for column in others if column.lower() in ("answer", "key", "correct")]
    if not candidates:
        candidates = [column for column in others if len({*names.get(column, ())}) < len(keys.rows)]
    candidates = [key.answer] if key.answer is not None else candidates if len(others) > 1 else others
    missing = next((name for name in (join_column, key.answer) if name is not None and name not in keys.columns), None)
    if missing is not None or len(candidates) != 1:
        problem = (
            f"has no column {missing!r}" if missing is not None else f"has {len(candidates)} columns for the answer"
        )
        raise DatasetError(
            f"{path}: {problem}: its columns are {', '.join(keys.columns)}; say which with answers: "
            f"{{path: {path.name}, on: ..., answer: ...}}"
        )
    names.pop(candidates[0], None)
    return names, [value_of(row.record, candidates[0]) for row in keys.rows]


def _read_letters(path: Path, *, numbered: bool) -> tuple[Sequence[str], Sequence[str]]:
    """Read the numbers and the letters of a text such as `1. B, 2. D`, or only letters of one such as `BDAC`."""
    try:
        text = decode(read_bytes(path)).strip()
    except (OSError, UnreadableError) as error:
        raise DatasetError(f"{path}: cannot be read ({error}): save it as UTF-8") from None
    pairs = _NUMBERED.findall(text)
    if pairs and not _NUMBERED.sub("", text):
        return [str(int(number)) for number, _ in pairs], [letter for _, letter in pairs]
    if numbered or re.search(r"[A-Za-z]{2,}\s*[:=]|[^\sA-Za-z0-9,;]", text):
        raise DatasetError(
            f"{path}: holds {text!r:.40}, which is more than numbers and letters: write it as `1. B` on each line"
        )
    return (), _LETTERS.findall(text)


def _plain(name: Any) -> str:
    """Write a number or a name alike in both tables: 1, "1" and 1.0 are one; empty if there is none."""
    if name is None:
        return ""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip()
