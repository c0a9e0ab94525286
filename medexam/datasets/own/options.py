"""What the options of one row are: from columns, a list, a mapping, or behind letters at the end of a text.

Whether letters at their beginning are labels is decided for a whole table, see `settle_options`.
"""

import datetime
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from medexam.datasets.own.names import ALPHABETS, in_order, pattern, plain_name, shift, word_lists
from medexam.datasets.own.tables import CellError, TableRow, try_each, value_of
from medexam.datasets.own.texts import unpack
from medexam.errors import DatasetError
from medexam.specs.dataset import ColumnsSpec

_END = r"[)\].:）．、：]"  # noqa: RUF001 - full-width marks of Chinese and Japanese
_LABEL = rf"[(\[]?((?:[^\W\d_]|\d{{1,2}})(?={_END})|[①-⑳]){_END}?+"
_AT_LINES = re.compile(rf"(?m)^[ \t]*{_LABEL}[ \t]*")
_IN_LINES = re.compile(rf"(?:^|(?<=\s)){_LABEL}[ \t]+")
_BARE = re.compile(r"(?m)^[ \t]*([A-Z])[ \t]+")
_OWN_LABEL = re.compile(rf"\s*(?:{_LABEL}(?!\d)|([A-Za-z\d])\s[-–](?=\s))\s*(?=\S)")  # noqa: RUF001
"""A label before an option, which may stand close to it, as in `(A)text`."""
_LEAD = r"\n[^\n]{0,20}{}\s*[:：]\s*\Z"  # noqa: RUF001
"""What stands before the first option, on a line of its own."""
_FIRST = frozenset({"1", *(letters[0] for letters in ALPHABETS), *(letters[0].upper() for letters in ALPHABETS)})
_NONE = frozenset(("", "nan", "NaN", "NAN", "N/A", "n/a", "#N/A", "<NA>", "\\N", "NULL"))
"""What a cell without an option may say. `NA` and `None` do not: noradrenaline, and an option."""
_NONE_OR_DASH = _NONE | {"-", "--", "–", "—"}  # noqa: RUF001 - dashes of texts
"""The same where no option is a sign."""
_LABELLED, _FEW = 0.95, 3
"""The share of rows through which labels run where they are labels; and options that begin so by chance."""

plain = partial(unicodedata.normalize, "NFKC")
"""Writes a label as plain letter or number: `①` is 1."""
Numbers = tuple[int, ...]
"""The numbers of right options, from 1, in ascending order; at least one."""


class OpenFieldError(DatasetError):
    """Rows that can be read in several ways, between which a `field` of `columns` decides."""

    def __init__(
        self, where: str, facts: str, field: str, values: str, readings: Iterable[Sequence[Numbers | None]] = ()
    ) -> None:
        super().__init__(f"{where}{facts}: say which with columns: {{{field}: {values}}}")
        self.field, self.detail, self.readings = field, f"{values}: {facts}", list(readings)
        """`readings`: the right options of each row in each way to read answers."""


@dataclass(slots=True)
class ReadOptions:
    """The options of a question, in the order shown, and what says which are right."""

    row: TableRow
    stem: str
    """Without the options, if they stand in it."""
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    """What the source calls each, such as its letter; None if it only orders them."""
    column: str = ""
    """Where they stand, for messages; empty at the end of the stem."""
    answer: Any = None


def split_marked(text: str, *, bare: bool = False) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
    """Split a text that ends in options behind letters or numbers, `A) ... B) ...` or `1. ...`; None if it does not.

    Returns what stands before them, their texts and their labels.

    Labels at the beginning of lines come first. Of a list of numbers and a later one of letters the letters are meant:
    the numbers are statements. `bare` also takes letters at the beginning of lines without a mark.
    """
    for form in (_AT_LINES, _IN_LINES, *([_BARE] if bare else [])):
        marks = list(form.finditer(text))
        runs = [run for place in range(len(marks)) if len(run := _run_from(marks[place:])) > 1]
        if not runs:
            continue
        run = max(runs, key=lambda run: (not plain(run[0][1]).isdigit(), len(run), run[0].start()))
        ends = [after.start() for after in run[1:]] + [len(text)]
        texts = [text[mark.end() : end].strip() for mark, end in zip(run, ends, strict=True)]
        separators = {text[-1:] for text in texts[:-1]}
        if len(separators) == 1 and separators <= {*",;|/"}:
            texts = [text.rstrip(" ,;|/") for text in texts]
        stem = pattern("lead", _LEAD).sub("", text[: run[0].start()]).strip()
        return stem, tuple(texts), tuple(plain(mark[1]) for mark in run)
    return None


def _run_from(marks: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """List the marks that count on from the first, if that is an A, a or 1."""
    run = [mark for mark in marks[:1] if plain(mark[1]) in _FIRST]
    for mark in marks[1:] if run else ():
        if plain(mark[1]) == shift(plain(run[-1][1]), 1):
            run.append(mark)
    return run


def is_run(labels: Sequence[str]) -> bool:
    """Return whether the labels are the first letters or numbers, each once, in any order."""
    first = next((label for label in labels if label in _FIRST), None)
    return first is not None and len(labels) > 1 and {*labels} == {shift(first, n) for n in range(len(labels))}


def read_options(stem: str, columns: str | Sequence[str] | None, row: TableRow, spec: ColumnsSpec) -> ReadOptions:
    """Read the options in `columns` of a row, or at the end of `stem` if there are none; raise `CellError`."""
    if spec.choices is not None:
        return ReadOptions(row, stem, spec.choices, None)
    if not columns:
        options = split_marked(stem)
        if options is None:
            raise CellError("", "neither the question nor a column has options after letters or numbers")
        return ReadOptions(row, *options)
    pairs: list[tuple[Any, Any]]
    if isinstance(columns, str):
        cell = unpack(value_of(row.record, columns))
        pairs = _pairs_of(cell.split(spec.between) if spec.between and isinstance(cell, str) else cell, columns)
        columns = (columns,)
    elif spec.shuffled:
        cells = [unpack(value_of(row.record, column)) for column in columns]
        pairs = [(None, text) for cell in cells for text in (cell if isinstance(cell, (list, tuple)) else [cell])]
    else:
        pairs = [(column, value_of(row.record, column)) for column in columns]
    names = columns if len(columns) == len(pairs) else [columns[0]] * len(pairs)
    texts = [_option_text(value, column) for (_, value), column in zip(pairs, names, strict=True)]
    labels = tuple(_option_text(label, columns[0]) for label, _ in pairs)
    labels = columns if labels == columns else labels  # one object for all rows
    # The cells behind the last option are empty or say so.
    has_signs = any(text not in _NONE_OR_DASH and not any(map(str.isalnum, text)) for text in texts)
    texts = ["" if text in (_NONE if has_signs else _NONE_OR_DASH) else text for text in texts]
    filled = max((place for place, text in enumerate(texts, 1) if text), default=0)
    return ReadOptions(row, stem, tuple(texts[:filled]), labels[:filled] if any(labels) else None, columns[0])


def _pairs_of(value: Any, column: str) -> list[tuple[Any, Any]]:
    """List the options that one cell holds, each behind what it is called; None if they are only ordered."""
    if isinstance(value, str):
        options = split_marked(value, bare=True)
        if options is None:
            raise CellError(column, f"is {value!r:.60}, no list, no mapping, and no lines that begin with letters")
        if options[0]:
            raise CellError(column, f"holds {options[0]!r:.40} before its first option")
        return list(zip(options[2], options[1], strict=True))
    if isinstance(value, Mapping):
        labels, texts = value.get("label"), value.get("text")
        if isinstance(labels, list) and isinstance(texts, list):
            if len(labels) != len(texts):
                raise CellError(column, f"holds {len(labels)} labels and {len(texts)} texts")
            return list(zip(labels, texts, strict=True))
        # A Parquet file holds a field for every letter that some question has.
        filled = {str(label): text for label, text in value.items() if text is not None}
        value = [
            {"label": name, **filled[name]} if isinstance(filled[name], Mapping) else (name, filled[name])
            for name in in_order(filled)
        ]
    if not isinstance(value, (list, tuple)):
        raise CellError(column, "is empty" if value is None else f"is {value!r:.60}, no list, no mapping, and no text")
    if value and all(isinstance(entry, (list, tuple)) and len(entry) == 2 for entry in value):
        return [(label, text) for label, text in value]
    if not value or not all(isinstance(entry, Mapping) for entry in value):
        return [(None, text) for text in value]
    shared = {plain_name(name): name for name in value[0] if all(name in record for record in value)}
    names = word_lists("records")
    label = next((shared[alias] for alias in names["labels"] if alias in shared), None)
    text = next((shared[alias] for alias in names["texts"] if alias in shared and shared[alias] != label), None)
    if text is not None:
        return [(None if label is None else each[label], each[text]) for each in value]
    # One field each, `{"A": "First"}`; a Parquet file gives each option the letters of all, the others empty.
    fields = [[(name, text) for name, text in each.items() if text is not None] for each in value]
    if any(len(each) != 1 for each in fields):
        raise CellError(column, f"holds {value[0]!r:.60}, which has no field {', '.join(names['texts'])}")
    return [each[0] for each in fields]


def _option_text(value: Any, column: str) -> str:
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, (list, tuple, Mapping, bytes)):
        raise CellError(column, f"holds {value!r:.60}, which is not the text of an option")
    if isinstance(value, (datetime.date, datetime.time)):
        raise CellError(column, f"holds the date {value}: spreadsheets turn 1/2 into a date; format the column as text")
    return str(value).strip()


def settle_options(options: Iterable[ReadOptions | CellError], spec: ColumnsSpec) -> list[ReadOptions | CellError]:
    """Strip labels that run through the rows; raise `OpenFieldError` if some have none."""
    settled = list(options)
    labels = [own_labels(row.texts) for row in settled if isinstance(row, ReadOptions) and row.texts]
    runs = [each for each in labels if is_run(each)]
    bare_count = sum(not any(each) for each in labels)
    if spec.marks == "labels" or (spec.marks is None and 2 * len(runs) > len(labels)):
        if spec.marks is None and bare_count > (1 - _LABELLED) * len(labels):
            facts = f"the options of {len(runs):,} rows begin with letters or numbers in order"
            raise OpenFieldError("", f"{facts}, and those of {bare_count:,} do not", "marks", "labels or text")
        are_ordered = all([*each] == in_order(each) for each in runs)
        settled = try_each(lambda row: _without_labels(row, are_ordered), settled)
    return try_each(lambda row: _check(row, shuffled=spec.shuffled), settled)


def own_labels(texts: Sequence[str]) -> tuple[str, ...]:
    """Find the letter or number before each option, without a sign if all have one in order; an empty text for none."""
    matches = [_OWN_LABEL.match(text) for text in texts]
    rests = {text.partition(" ")[2].strip() for text in texts}
    bare = tuple(text.partition(" ")[0] for text in texts) if len(texts) >= _FEW and not any(matches) else ()
    if len(rests - {""}) == len(texts) and is_run(bare) and "".join(bare).isalpha() and [*bare] == in_order(bare):
        return bare
    return tuple(plain(match[match.lastindex or 1]) if match else "" for match in matches)


def _without_labels(row: ReadOptions, are_ordered: bool) -> ReadOptions:
    labels = own_labels(row.texts)
    if not row.texts or (not any(labels) and are_ordered):
        return row
    letters = ", ".join(label or "none" for label in labels)
    if not is_run(labels):
        raise CellError(row.column, f"has options with the letters {letters}, which are not in order")
    if row.labels is not None and [*labels] != in_order(labels):
        keys = ", ".join(row.labels)
        raise CellError(row.column, f"has options that begin with {letters}, but their keys are {keys}")
    cut = (_OWN_LABEL.subn("", text, count=1) for text in row.texts)
    texts = tuple(text if count else text.partition(" ")[2].strip() for text, count in cut)
    return replace(row, texts=texts, labels=row.labels or labels)


def _check(row: ReadOptions, *, shuffled: bool) -> ReadOptions:
    """Check that each option has a text, and that the stem does not repeat the options."""
    if len(row.texts) < 2:
        raise CellError(row.column, f"a question needs at least two options, this one has {len(row.texts)}")
    if "" in row.texts:
        place = row.texts.index("")
        if row.labels is not None and row.column == row.labels[0]:
            raise CellError(row.labels[place], "is empty, and an option behind it is not")
        raise CellError(row.column, f"option {place + 1} is empty")
    if row.column and row.texts[-1] in row.stem:
        with suppress(CellError):
            inside = split_marked(row.stem)
            if inside is not None and inside[0] and inside[1] == row.texts:
                row = replace(row, stem=inside[0])
    if shuffled:
        order = sorted(row.texts, key=lambda text: hashlib.sha256(f"{row.stem}\0{text}".encode()).digest())
        return replace(row, texts=tuple(order), labels=None)
    return row
