"""What the options of one row are: from columns, a list, a mapping, or the end of a text.

Whether letters at their beginning are labels is decided for a whole table, see `settle_options`.
"""

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from medexam.datasets.own.labels import (
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

_NAMES = ("label", "key", "letter", "id", "aid", "number", "option_id", "identifier", "index")
_TEXTS = ("text", "value", "option", "atext", "content", "answer", "option_text", "answer_text", "title", "body")
_WITHOUT = frozenset(("", "nan", "NaN", "NAN", "N/A", "n/a", "#N/A", "<NA>"))
_DASHES = frozenset(("-", "--", "–", "—"))  # noqa: RUF001 - dashes of texts
"""What a cell without an option may say. `NA` and `None` do not: noradrenaline, and an option."""
MARKED_ROWS = 0.95
"""The share of rows through which labels run where they are labels."""


Settled = ReadOptions | CellError
"""The options of a row, or what is wrong with them."""


def read_options(stem: str, columns: str | Sequence[str] | None, record: Record, spec: ColumnsSpec) -> ReadOptions:
    """The options in `columns` of a record, or at the end of `stem` if there are none; raises `CellError`."""
    if not columns:
        found = split_marked(stem)
        if found is None:
            raise CellError("", "the question holds no options behind letters or numbers, and no column does")
        return found
    if isinstance(columns, str):
        values, labels = _of_cell(unpack(value_of(record, columns)), columns, spec.between)
        texts = [option_text(value, columns) for value in values]
        return _without_empty(ReadOptions(stem, tuple(texts), None if labels is None else tuple(labels), columns))
    texts = []
    for column in columns:
        value = value_of(record, column)
        several = unpack(value) if spec.shuffled else value
        held = several if spec.shuffled and isinstance(several, (list, tuple)) else [value]
        texts += [option_text(each, column) for each in held]
    return _without_empty(ReadOptions(stem, tuple(texts), None if spec.shuffled else tuple(columns), columns[0]))


def _of_cell(value: Any, column: str, between: str | None) -> tuple[Sequence[Any], Sequence[str] | None]:
    """The options that one cell holds, and what they are called; None if they are only ordered."""
    if isinstance(value, str) and between:
        return value.split(between), None
    if isinstance(value, str):
        found = split_marked(value, bare=True)
        if found is None:
            raise CellError(column, f"is {value!r:.60}, no list, no mapping, and no lines behind letters or numbers")
        if found.stem:
            raise CellError(column, f"holds {found.stem!r:.40} before the option {found.labels and found.labels[0]}")
        return found.texts, found.labels
    if isinstance(value, Mapping):
        labels, texts = value.get("label"), value.get("text")
        if isinstance(labels, list) and isinstance(texts, list):
            return texts, [option_text(each, column) for each in labels]
        # A Parquet file holds a field for every letter that some question has.
        filled = {str(label): text for label, text in value.items() if text is not None}
        names = in_order(filled)
        if not names or not all(isinstance(text, Mapping) for text in filled.values()):
            return [filled[name] for name in names], names
        value = [{"label": name, **filled[name]} for name in names]
    if not isinstance(value, (list, tuple)):
        what = "is empty" if value is None else f"is {value!r:.60}, no list, no mapping, and no text"
        raise CellError(column, what)
    if value and all(isinstance(each, (list, tuple)) and len(each) == 2 for each in value):
        value = [{"label": label, "text": text} for label, text in value]
    return _of_records(value, column) if value and all(isinstance(each, Mapping) for each in value) else (value, None)


def _of_records(records: Sequence[Mapping[str, Any]], column: str) -> tuple[Sequence[Any], Sequence[str] | None]:
    shared = {plain_name(name): name for name in records[0] if all(name in record for record in records)}
    name = next((shared[each] for each in _NAMES if each in shared), None)
    text = next((shared[each] for each in _TEXTS if each in shared and shared[each] != name), None)
    if text is not None:
        labels = None if name is None else [option_text(record[name], column) for record in records]
        return [record[text] for record in records], labels
    # One field each, `{"A": "First"}`; a Parquet file gives each option the letters of all, the others empty.
    filled = [[(label, value) for label, value in record.items() if value is not None] for record in records]
    if not all(len(fields) == 1 for fields in filled):
        raise CellError(column, f"holds {records[0]!r:.60}, which has no field {', '.join(_TEXTS)}")
    return [fields[0][1] for fields in filled], [str(fields[0][0]) for fields in filled]


def settle_options(rows: Sequence[Settled], spec: ColumnsSpec) -> list[Settled]:
    """The options of all rows without their marks: the sign at the right ones, and labels that run through the rows.

    Raises `OpenFieldError` if labels run through some of the rows, and the others have none.
    """

    def without_sign(row: Settled) -> Settled:
        return _find_right(row, spec.right_mark) if spec.right_mark and isinstance(row, ReadOptions) else row

    rows = [without_sign(row) for row in rows]
    if spec.marks != "text":
        # A sign may stand before a label, or behind it.
        rows = [without_sign(row) for row in _cut_labels(rows, stated=spec.marks == "labels")]
    return [_checked(row, shuffled=spec.shuffled) if isinstance(row, ReadOptions) else row for row in rows]


def _cut_labels(rows: Sequence[Settled], *, stated: bool) -> list[Settled]:
    """The options without labels at the beginning of their texts, if these run through the rows of the table."""
    if not any(isinstance(row, ReadOptions) and row.texts and OWN_MARK.match(row.texts[0]) for row in rows):
        return list(rows)
    marked = [_own_labels(row) if isinstance(row, ReadOptions) else None for row in rows]
    some = sum(each is not None for each in marked)
    running = [each for each in marked if each is not None and is_run(each)]
    without = sum(isinstance(row, ReadOptions) for row in rows) - some
    if not stated:
        if 2 * len(running) <= some + without:
            return list(rows)
        if without > (1 - MARKED_ROWS) * (some + without):
            facts = (
                f"the options of {len(running):,} rows begin with letters or numbers in order, and those of "
                f"{without:,} do not"
            )
            raise OpenFieldError("", facts, "marks", "labels or text")
    ordered = all([*labels] == in_order(labels) for labels in running)
    return [
        _without_labels(row, labels, ordered=ordered) if isinstance(row, ReadOptions) else row
        for row, labels in zip(rows, marked, strict=True)
    ]


def _own_labels(row: ReadOptions) -> tuple[str, ...] | None:
    """The letter or number at the beginning of each option, empty if it has none; None if no option has one."""
    found = [OWN_MARK.match(text) for text in row.texts]
    return tuple(plain_label(mark[2]) if mark else "" for mark in found) if any(found) else None


def _without_labels(row: ReadOptions, labels: tuple[str, ...] | None, *, ordered: bool) -> Settled:
    if labels is None:
        if ordered:
            return row
        return CellError(
            row.column, f"holds {row.texts[0]!r:.40} without a letter, and other rows have their own order"
        )
    if not is_run(labels):
        shown = ", ".join(label or "none" for label in labels)
        return CellError(row.column, f"has options with the letters {shown}, which do not run")
    if row.labels is not None and [*labels] != in_order(labels):
        stated = ", ".join(row.labels)
        return CellError(row.column, f"has options that begin with {', '.join(labels)}, and they are called {stated}")
    # The first group is the sign at a right option.
    return replace(
        row, texts=tuple(OWN_MARK.sub(r"\1", text, count=1) for text in row.texts), labels=row.labels or labels
    )


def _find_right(row: ReadOptions, mark: str) -> ReadOptions:
    """The options without the sign at the right ones."""
    right = [is_signed(text, mark) for text in row.texts]
    texts = tuple(
        text.removeprefix(mark).removesuffix(mark).strip() if signed else text
        for text, signed in zip(row.texts, right, strict=True)
    )
    before = row.right or (False,) * len(right)
    return replace(row, texts=texts, right=tuple(a or b for a, b in zip(before, right, strict=True)))


def is_signed(text: str, mark: str) -> bool:
    """Whether a sign stands before or behind an option; behind it, a plus is a charge."""
    return text.startswith(mark) or (mark not in "+=" and text.endswith(mark))


def _asked_once(stem: str, texts: Sequence[str]) -> str:
    """The stem without the same options at its end."""
    try:
        inside = split_marked(stem)
    except CellError:
        return stem
    return inside.stem if inside is not None and inside.stem and inside.texts == tuple(texts) else stem


def _without_empty(found: ReadOptions) -> ReadOptions:
    """The options up to the last one that says something; the cells of the others are empty or say so."""
    texts = found.texts
    if _WITHOUT.isdisjoint(texts) and _DASHES.isdisjoint(texts):
        return found
    # A minus beside a plus is an option.
    signs = any(text not in _WITHOUT | _DASHES and not any(map(str.isalnum, text)) for text in texts)
    empty = _WITHOUT if signs else _WITHOUT | _DASHES
    filled = max((place for place, text in enumerate(texts, 1) if text not in empty), default=0)
    texts = tuple("" if text in empty else text for text in texts[:filled])
    labels = found.labels
    if labels is not None and len(labels) == len(found.texts):
        labels = labels[:filled]
    return replace(found, texts=texts, labels=labels)


def _checked(found: ReadOptions, *, shuffled: bool) -> Settled:
    if len(found.texts) < 2:
        return CellError(found.column, f"a question needs at least two options, this one has {len(found.texts)}")
    if "" in found.texts:
        place = found.texts.index("")
        if found.labels is not None and found.column == found.labels[0]:
            return CellError(found.labels[place], "is empty, and an option behind it is not")
        return CellError(found.column, f"option {place + 1} is empty")
    if found.labels is not None and len(found.labels) != len(found.texts):
        return CellError(found.column, f"holds {len(found.labels)} labels and {len(found.texts)} texts")
    if found.column and found.texts[-1] in found.stem:
        found = replace(found, stem=_asked_once(found.stem, found.texts))
    if shuffled:
        order = sorted(found.texts, key=lambda text: hashlib.sha256(f"{found.stem}\0{text}".encode()).digest())
        return replace(found, texts=tuple(order), labels=None)
    return found


def option_text(value: Any, column: str) -> str:
    """An option as text, empty if there is none; raises `CellError` for what is no text."""
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, (list, tuple, Mapping, bytes)):
        raise CellError(column, f"holds {value!r:.60}, which is no text of an option")
    if isinstance(value, (datetime.date, datetime.time)):
        raise CellError(column, f"holds the date {value}: spreadsheets make one of 1/2; format the column as text")
    return str(value).strip()
