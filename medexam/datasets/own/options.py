"""What the options of one row are: from columns, a list, a mapping, or the end of a text.

Whether letters at their beginning are labels is decided for a whole table, see `settle_options`.
"""

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from medexam.datasets.own.labels import OWN_MARK, CellError, ReadOptions, is_run, plain_label, split_marked
from medexam.datasets.own.names import plain_name
from medexam.datasets.own.tables import Record, get
from medexam.datasets.own.texts import unpack
from medexam.errors import DatasetError
from medexam.specs.columns import ColumnsSpec

_NAMES = ("label", "key", "letter", "id", "aid", "number", "option_id", "identifier", "index")
_TEXTS = ("text", "value", "option", "atext", "content", "answer", "option_text", "answer_text", "title", "body")
_WITHOUT = frozenset(("", "nan", "NaN", "NAN", "N/A", "n/a", "#N/A", "<NA>"))
_DASHES = frozenset(("-", "--", "–", "—"))  # noqa: RUF001 - dashes of texts
"""What a cell without an option may say. `NA` and `None` do not: noradrenaline, and an option."""
MARKED_ROWS = 0.95
"""The share of rows through which labels run where they are labels."""


class OpenFieldError(DatasetError):
    """Rows that can be read in several ways, between which a field of `columns` decides."""

    def __init__(self, where: str, facts: str, field: str, values: str) -> None:
        super().__init__(f"{where}{facts}: say which with columns: {{{field}: {values}}}")
        self.field, self.detail = field, f"{values}: {facts}"
        """The field, and its values with what speaks for each."""


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
        try:
            value = unpack(get(record, columns))
        except KeyError:
            raise CellError(columns, "is missing") from None
        found = _of_value(stem, value, columns, spec.between)
    else:
        found = _of_columns(stem, columns, record, several=spec.shuffled)
    return _without_empty(found)


def _of_columns(stem: str, columns: Sequence[str], record: Record, *, several: bool) -> ReadOptions:
    """A column each; `several`: a column may hold a list of them."""
    texts: list[str] = []
    labels: list[str] = []
    for column in columns:
        try:
            value = get(record, column)
        except KeyError:
            value = None
        held = unpack(value) if several else value
        for each in held if several and isinstance(held, (list, tuple)) else [held]:
            texts.append(option_text(each, column))
            labels.append(column)
    return ReadOptions(stem, tuple(texts), None if several else tuple(labels), columns[0])


def _of_value(stem: str, value: Any, column: str, between: str | None) -> ReadOptions:
    if isinstance(value, str) and between:
        texts = [each.strip() for each in value.split(between)]
        return ReadOptions(stem, tuple(texts), None, column)
    if isinstance(value, str):
        found = split_marked(value, bare=True)
        if found is None:
            raise CellError(column, f"is {value!r:.60}, no list, no mapping, and no lines behind letters or numbers")
        if found.stem:
            raise CellError(column, f"holds {found.stem!r:.40} before the option {found.labels and found.labels[0]}")
        return replace(found, stem=stem, column=column)
    if isinstance(value, Mapping):
        inner = [value.get(name) for name in ("label", "text")]
        if all(isinstance(each, list) for each in inner):
            labels, texts = ([option_text(each, column) for each in part or []] for part in inner)
            return ReadOptions(stem, tuple(texts), tuple(labels), column)
        # A Parquet file holds a field for every letter that some question has.
        filled = {str(label): text for label, text in value.items() if text is not None}
        names = sorted(filled, key=lambda label: (len(label), label))
        if names and all(isinstance(text, Mapping) for text in filled.values()):
            value = [{"label": name, **filled[name]} for name in names]
        else:
            return ReadOptions(stem, tuple(option_text(filled[label], column) for label in names), tuple(names), column)
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(each, (list, tuple)) and len(each) == 2 for each in value):
            value = [{"label": label, "text": text} for label, text in value]
        if value and all(isinstance(each, Mapping) for each in value):
            return ReadOptions(stem, *_of_mappings(value, column), column)
        return ReadOptions(stem, tuple(option_text(each, column) for each in value), None, column)
    raise CellError(column, f"is {value!r:.60}, no list, no mapping, and no text")


def _of_mappings(entries: Sequence[Mapping[str, Any]], column: str) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    shared = {plain_name(name): name for name in entries[0] if all(name in entry for entry in entries)}
    name = next((shared[each] for each in _NAMES if each in shared), None)
    text = next((shared[each] for each in _TEXTS if each in shared and shared[each] != name), None)
    if text is None:
        # One field each, `{"A": "First"}`; a Parquet file gives each option the letters of all, the others empty.
        filled = [[(label, value) for label, value in entry.items() if value is not None] for entry in entries]
        if all(len(fields) == 1 for fields in filled):
            return tuple(option_text(fields[0][1], column) for fields in filled), tuple(str(f[0][0]) for f in filled)
        raise CellError(column, f"holds {entries[0]!r:.60}, which has no field {', '.join(_TEXTS)}")
    texts = tuple(option_text(entry[text], column) for entry in entries)
    return texts, None if name is None else tuple(option_text(entry[name], column) for entry in entries)


def settle_options(rows: Sequence[Settled], spec: ColumnsSpec) -> list[Settled]:
    """The options of all rows without their marks: the sign at the right ones, and labels that run through the rows.

    Raises `DatasetError` if labels run through some of the rows, and the others have none.
    """
    if spec.right_mark:
        rows = [_find_right(row, spec.right_mark) if isinstance(row, ReadOptions) else row for row in rows]
    if spec.marks != "text":
        rows = _cut_labels(rows, stated=spec.marks == "labels")
    if spec.right_mark:
        rows = [_find_right(row, spec.right_mark) if isinstance(row, ReadOptions) else row for row in rows]
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
    ordered = all(map(_in_order, running))
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
    if row.labels is not None and not _in_order(labels):
        stated = ", ".join(row.labels)
        return CellError(row.column, f"has options that begin with {', '.join(labels)}, and they are called {stated}")
    texts = tuple(_cut(text) for text in row.texts)
    return replace(row, texts=texts, labels=row.labels or labels)


def _cut(text: str) -> str:
    mark = OWN_MARK.match(text)
    return text if mark is None else mark[1] + text[mark.end() :]


def _in_order(labels: Sequence[str]) -> bool:
    return list(labels) == sorted(labels, key=lambda label: (len(label), label))


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
        detail = f"a question needs at least two options, this one has {len(found.texts)}"
        return CellError(found.column, detail)
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
