"""The right answers of a table that stand apart from its questions: in another file, or as a list."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medexam.datasets.locating import find_own_file
from medexam.datasets.own.columns import KEYED
from medexam.datasets.own.tables import SourceTable, read_file, read_own_table, value_of
from medexam.errors import DatasetError
from medexam.inputs import UnreadableError, decode, read_bytes
from medexam.specs import DatasetSpec
from medexam.specs.columns import KeySpec

_TEXTS = (".txt", ".key", "")
"""Endings of files that hold a letter for each question, perhaps behind its number."""
_NUMBERED = re.compile(r"(\d+)\s*[-.):=\t ]\s*([A-Za-z*]|\d{1,2})(?=[\s,;]|$)[\s,;]*")
_LETTERS = re.compile(r"[A-Za-z0-9]")


def read_questions(spec: DatasetSpec) -> SourceTable:
    """Read the table of a spec with the answers of its key; raise `DatasetError` if one cannot be read or does not
    fit.
    """
    table = read_own_table(spec)
    return table if spec.answers is None else add_key(table, spec.answers)


def add_key(table: SourceTable, key: KeySpec) -> SourceTable:
    """Add a column `KEYED` to the table, empty where the key has no answer; raise `DatasetError` if it does not fit."""
    source = "dataset.answers" if key.path is None else str(key.path)
    column, other = (key.on, key.on) if key.on is None or isinstance(key.on, str) else (key.on[0], key.on[-1])
    if column is not None and column.partition(".")[0] not in table.columns:
        raise DatasetError(f"{table.source}: answers.on is {column!r}, no column: they are {', '.join(table.columns)}")
    answers = _read_key(key.path, other, key.answer) if key.path is not None else list(enumerate(key.given or ()))
    if column is None:
        if len(answers) != len(table.rows):
            raise DatasetError(
                f"{source}: holds {len(answers):,} answers, and {table.source} {len(table.rows):,} rows: name the "
                "column that both have with answers: {on: ...}"
            )
        return _with_answers(table, [answer for _, answer in answers])
    by_name: dict[str, Any] = {}
    for name, answer in answers:
        if by_name.setdefault(_plain(name), answer) != answer:
            raise DatasetError(f"{source}: has two answers for {column} {_plain(name)!r}: make it unique")
    by_name.pop("", None)
    names = [_plain(value_of(row.record, column)) for row in table.rows]
    if by_name.keys().isdisjoint(names):
        raise DatasetError(
            f"{source}: none of its {column} (such as {next(iter(by_name), None)!r}) is in {table.source} (such as "
            f"{names[0]!r}): name the column that both have with answers: {{on: ...}}"
        )
    twice, times = Counter(filter(None, names)).most_common(1)[0]
    if times > 1:
        raise DatasetError(
            f"{table.source}: several rows have {column} {twice!r}: make it unique, so that the key names one row"
        )
    return _with_answers(table, [by_name.get(name) for name in names])


def _with_answers(table: SourceTable, answers: Sequence[Any]) -> SourceTable:
    rows = tuple(
        row if isinstance(row.record, str) else replace(row, record={**row.record, KEYED: answer})
        for row, answer in zip(table.rows, answers, strict=True)
    )
    return replace(table, columns=(*table.columns, KEYED), rows=rows)


def _read_key(path: Path, join_column: str | None, answer: str | None) -> list[tuple[Any, Any]]:
    """List what a key is joined on and its answer, one by one; without `join_column` in order."""
    path = find_own_file(path)
    if path.suffix.lower() in _TEXTS:
        return _read_letters(path, numbered=join_column is not None)
    table = read_file(path)
    others = [column for column in table.columns if column != join_column]
    candidates = [column for column in others if column.lower() in ("answer", "key", "correct")] or others
    missing = next((name for name in (join_column, answer) if name is not None and name not in table.columns), None)
    if missing is not None or (answer is None and len(candidates) != 1):
        problem = (
            f"has no column {missing!r}" if missing is not None else f"has {len(candidates)} columns for the answer"
        )
        raise DatasetError(
            f"{path}: {problem}: its columns are {', '.join(table.columns)}; say which with answers: "
            f"{{path: {path.name}, on: ..., answer: ...}}"
        )
    column = answer or candidates[0]
    return [
        (row.number if join_column is None else value_of(row.record, join_column), value_of(row.record, column))
        for row in table.rows
    ]


def _read_letters(path: Path, *, numbered: bool) -> list[tuple[Any, Any]]:
    """Read a text such as `1. B, 2. D` or `BDAC`."""
    try:
        text = decode(read_bytes(path)).strip()
    except (OSError, UnreadableError) as error:
        raise DatasetError(f"{path}: cannot be read ({error}): save it as UTF-8") from None
    pairs = _NUMBERED.findall(text)
    if pairs and not _NUMBERED.sub("", text):
        return list(pairs)
    if numbered or re.search(r"[A-Za-z]{2,}\s*[:=]|[^\sA-Za-z0-9,;]", text):
        raise DatasetError(
            f"{path}: holds {text!r:.40}, which is more than numbers and letters: write it as `1. B` on each line"
        )
    return list(enumerate(_LETTERS.findall(text)))


def _plain(name: Any) -> str:
    """Write a number or a name alike in both tables: 1, "1" and 1.0 are one; empty if there is none."""
    if name is None:
        return ""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip()
