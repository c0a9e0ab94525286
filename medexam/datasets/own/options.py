"""What the options of one row are: from columns, a list, a mapping, or the end of a text.

Whether letters at their beginning are labels is decided for a whole table, see `settle_options`.
"""

import datetime
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from medexam.datasets.own.labels import (
    CLOSE_MARK,
    CUE,
    OWN_MARK,
    CellError,
    OpenFieldError,
    ReadOptions,
    in_order,
    is_run,
    plain_label,
    split_marked,
)
from medexam.datasets.own.names import plain_name
from medexam.datasets.own.tables import Record, value_of
from medexam.datasets.own.texts import unpack
from medexam.specs.columns import ColumnsSpec

LABELS = ("label", "key", "letter", "id", "aid", "number", "option_id", "identifier", "index")
_TEXTS = ("text", "value", "option", "atext", "content", "answer", "option_text", "answer_text", "title", "body")
_WITHOUT = frozenset(("", "nan", "NaN", "NAN", "N/A", "n/a", "#N/A", "<NA>", "\\N", "NULL"))
"""What a cell without an option may say. `NA` and `None` do not: noradrenaline, and an option."""
_DASHES = frozenset(("-", "--", "–", "—"))  # noqa: RUF001 - dashes of texts
"""Others that it may say, where no option is a sign."""
MARKED_ROWS = 0.95
"""The share of rows through which labels run where they are labels."""


T = TypeVar("T")
Settled = ReadOptions | CellError
"""The options of a row, or what is wrong with them."""


def read_options(stem: str, columns: str | Sequence[str] | None, record: Record, spec: ColumnsSpec) -> ReadOptions:
    """Read the options in `columns` of a record, or at the end of `stem` if there are none; raise `CellError`."""
    if not columns:
        options = split_marked(stem)
        if options is None:
            raise CellError("", "neither the question nor a column has options after letters or numbers")
        return options
    if isinstance(columns, str):
        values, labels = _of_cell(unpack(value_of(record, columns)), columns, spec.between)
        texts = [option_text(value, columns) for value in values]
        return _without_empty(ReadOptions(stem, tuple(texts), None if labels is None else tuple(labels), columns))
    texts = []
    for column in columns:
        value = value_of(record, column)
        parts = unpack(value) if spec.shuffled else value
        contents = parts if spec.shuffled and isinstance(parts, (list, tuple)) else [value]
        texts += [option_text(content, column) for content in contents]
    return _without_empty(ReadOptions(stem, tuple(texts), None if spec.shuffled else tuple(columns), columns[0]))


def _of_cell(value: Any, column: str, between: str | None) -> tuple[Sequence[Any], Sequence[str] | None]:
    """Return the options that one cell holds, and what they are called; None if they are only ordered."""
    if isinstance(value, str) and between:
        return value.split(between), None
    if isinstance(value, str):
        options = split_marked(value, bare=True)
        if options is None:
            raise CellError(
                column, f"is {value!r:.60}, not a list, a mapping, or lines that begin with letters or numbers"
            )
        if options.stem:
            raise CellError(
                column, f"holds {options.stem!r:.40} before the option {options.labels and options.labels[0]}"
            )
        return options.texts, options.labels
    if isinstance(value, Mapping):
        labels, texts = value.get("label"), value.get("text")
        if isinstance(labels, list) and isinstance(texts, list):
            return texts, [option_text(label, column) for label in labels]
        # A Parquet file holds a field for every letter that some question has.
        filled = {str(label): text for label, text in value.items() if text is not None}
        names = in_order(filled)
        if not names or not all(isinstance(text, Mapping) for text in filled.values()):
            return [filled[name] for name in names], names
        value = [{"label": name, **filled[name]} for name in names]
    if not isinstance(value, (list, tuple)):
        detail = "is empty" if value is None else f"is {value!r:.60}, no list, no mapping, and no text"
        raise CellError(column, detail)
    if value and all(isinstance(entry, (list, tuple)) and len(entry) == 2 for entry in value):
        value = [{"label": label, "text": text} for label, text in value]
    return _of_records(value, column) if value and all(isinstance(entry, Mapping) for entry in value) else (value, None)


def _of_records(records: Sequence[Mapping[str, Any]], column: str) -> tuple[Sequence[Any], Sequence[str] | None]:
    shared = {plain_name(name): name for name in records[0] if all(name in record for record in records)}
    name = next((shared[alias] for alias in LABELS if alias in shared), None)
    text = next((shared[alias] for alias in _TEXTS if alias in shared and shared[alias] != name), None)
    if text is not None:
        labels = None if name is None else [option_text(record[name], column) for record in records]
        return [record[text] for record in records], labels
    # One field each, `{"A": "First"}`; a Parquet file gives each option the letters of all, the others empty.
    filled = [[(label, value) for label, value in record.items() if value is not None] for record in records]
    if not all(len(fields) == 1 for fields in filled):
        raise CellError(column, f"holds {records[0]!r:.60}, which has no field {', '.join(_TEXTS)}")
    return [fields[0][1] for fields in filled], [str(fields[0][0]) for fields in filled]


def change_each(change: Callable[[T], ReadOptions], rows: Iterable[T | CellError]) -> list[Settled]:
    """List what `change` makes of each row, or the `CellError` that it raises; what is wrong already stays so."""
    changed: list[Settled] = []
    for row in rows:
        try:
            changed.append(row if isinstance(row, CellError) else change(row))
        except CellError as error:
            # Its traceback would keep the row.
            changed.append(error.with_traceback(None))
    return changed


def settle_options(rows: Sequence[Settled], spec: ColumnsSpec) -> list[Settled]:
    """Strip the options of all rows of their marks: the sign at the right ones, and labels that run through the rows.

    Raises `OpenFieldError` if labels run through some of the rows, and the others have none.
    """
    rows = change_each(partial(_find_right, mark=spec.right_mark), rows)
    if spec.marks != "text":
        # A sign may stand before a label, or behind it.
        rows = _cut_labels(rows, is_stated=spec.marks == "labels")
        rows = change_each(partial(_find_right, mark=spec.right_mark), rows)
    return change_each(partial(_check, shuffled=spec.shuffled), rows)


def _cut_labels(rows: Sequence[Settled], *, is_stated: bool) -> Sequence[Settled]:
    """Cut the labels at the beginning of the options' texts, if these run through the rows of the table."""
    readable = [row for row in rows if isinstance(row, ReadOptions) and row.texts]
    mark = OWN_MARK
    runs = [row for row in readable if is_run(_own_labels(row, mark))]
    if len(runs) < len(readable) and all(is_run(_own_labels(row, CLOSE_MARK)) for row in readable):
        mark, runs = CLOSE_MARK, readable
    bare_count = sum(not any(_own_labels(row, mark)) for row in readable)
    if not is_stated and 2 * len(runs) <= len(readable):
        return rows
    if not is_stated and bare_count > (1 - MARKED_ROWS) * len(readable):
        facts = f"the options of {len(runs):,} rows begin with letters or numbers in order, and those of {bare_count:,}"
        raise OpenFieldError("", f"{facts} do not", "marks", "labels or text")
    are_ordered = all([*labels] == in_order(labels) for labels in (_own_labels(row, mark) for row in runs))
    return change_each(partial(_without_labels, mark=mark, are_ordered=are_ordered), rows)


def _own_labels(row: ReadOptions, mark: re.Pattern[str]) -> tuple[str, ...]:
    """Find the letter or number at the beginning of each option; empty texts where there is none."""
    matches = [mark.match(text) for text in row.texts]
    return tuple(plain_label(match[match.lastindex or 2]) if match else "" for match in matches)


def _without_labels(row: ReadOptions, *, mark: re.Pattern[str], are_ordered: bool) -> ReadOptions:
    labels = _own_labels(row, mark)
    if not row.texts or (not any(labels) and are_ordered):
        return row
    if not any(labels):
        detail = f"holds {row.texts[0]!r:.40} without a letter, and other rows have their own order"
        raise CellError(row.column, detail)
    if not is_run(labels):
        letters = ", ".join(label or "none" for label in labels)
        raise CellError(row.column, f"has options with the letters {letters}, which are not in order")
    if row.labels is not None and [*labels] != in_order(labels):
        stated = ", ".join(row.labels)
        raise CellError(row.column, f"has options that begin with {', '.join(labels)}, but their keys are {stated}")
    # The first group is the sign at a right option.
    texts = tuple(mark.sub(r"\1", text, count=1) for text in row.texts)
    return replace(row, texts=texts, labels=row.labels or labels)


def _find_right(row: ReadOptions, *, mark: str | None) -> ReadOptions:
    """Find the right options by their sign, and strip it."""
    if not mark:
        return row
    signed = [is_signed(text, mark) for text in row.texts]
    texts = tuple(
        text.removeprefix(mark).removesuffix(mark).strip() if is_right else text
        for text, is_right in zip(row.texts, signed, strict=True)
    )
    before = row.right or (False,) * len(signed)
    return replace(row, texts=texts, right=tuple(a or b for a, b in zip(before, signed, strict=True)))


def is_signed(text: str, mark: str) -> bool:
    """Return whether a sign stands before or behind an option; behind it, a plus is a charge."""
    return text.startswith(mark) or (mark not in "+=" and text.endswith(mark))


def _without_empty(options: ReadOptions) -> ReadOptions:
    """Return the options up to the last one that says something; the cells of the others are empty or say so."""
    texts = options.texts
    if _WITHOUT.isdisjoint(texts) and _DASHES.isdisjoint(texts):
        return options
    # A minus beside a plus is an option.
    signs = any(text not in _WITHOUT | _DASHES and not any(map(str.isalnum, text)) for text in texts)
    empty = _WITHOUT if signs else _WITHOUT | _DASHES
    filled = max((place for place, text in enumerate(texts, 1) if text not in empty), default=0)
    texts = tuple("" if text in empty else text for text in texts[:filled])
    labels = options.labels
    if labels is not None and len(labels) == len(options.texts):
        labels = labels[:filled]
    return replace(options, texts=texts, labels=labels)


def _check(row: ReadOptions, *, shuffled: bool) -> ReadOptions:
    """Check that each option has a text, and that the stem does not repeat the options; raise `CellError` if they are
    none.
    """
    if len(row.texts) < 2:
        raise CellError(row.column, f"a question needs at least two options, this one has {len(row.texts)}")
    if "" in row.texts:
        place = row.texts.index("")
        if row.labels is not None and row.column == row.labels[0]:
            raise CellError(row.labels[place], "is empty, and an option behind it is not")
        raise CellError(row.column, f"option {place + 1} is empty")
    if row.labels is not None and len(row.labels) != len(row.texts):
        raise CellError(row.column, f"holds {len(row.labels)} labels and {len(row.texts)} texts")
    if row.column and row.texts[-1] in row.stem:
        with suppress(CellError):
            inside = split_marked(row.stem)
            if inside is not None and inside.stem and inside.texts == row.texts:
                row = replace(row, stem=inside.stem)
    cue = CUE.search(row.stem)
    if cue is not None and (cue[1].strip("()[]. ").casefold() in _names_of(row)):
        raise CellError("", f"ends in its answer, {cue[0].strip()!r:.40}")
    if shuffled:
        order = sorted(row.texts, key=lambda text: hashlib.sha256(f"{row.stem}\0{text}".encode()).digest())
        return replace(row, texts=tuple(order), labels=None)
    return row


def _names_of(row: ReadOptions) -> set[str]:
    """List what options are called in small letters: their letters and texts."""
    labels = row.labels or tuple("abcdefghij"[: len(row.texts)])
    return {name.casefold().rstrip(".") for name in (*labels, *row.texts)}


def option_text(value: Any, column: str) -> str:
    """Return an option as text, empty if there is none; raise `CellError` for what is no text."""
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, (list, tuple, Mapping, bytes)):
        raise CellError(column, f"holds {value!r:.60}, which is not the text of an option")
    if isinstance(value, (datetime.date, datetime.time)):
        raise CellError(column, f"holds the date {value}: spreadsheets turn 1/2 into a date; format the column as text")
    return str(value).strip()
