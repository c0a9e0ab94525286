"""What the options of one row are: from columns, a list, a mapping, or the end of a text."""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from medexam.datasets.own.tables import Record, get, unpack

_MARK = r"[(\[]?([A-Za-z]|\d{1,2})(?:[)\].:]|[）．、：])"  # noqa: RUF001 - full-width marks of Chinese and Japanese
_AT_LINES = re.compile(rf"(?m)^[ \t]*{_MARK}[ \t]*")
_IN_LINES = re.compile(rf"(?:^|(?<=\s)){_MARK}[ \t]+")
_BARE = re.compile(r"(?m)^[ \t]*([A-Z])[ \t]+")
_OWN_MARK = re.compile(rf"\s*{_MARK}\s+")
_NAMES = ("label", "key", "letter", "id", "aid", "number")
_TEXTS = ("text", "value", "option", "atext", "content")


class CellError(ValueError):
    """What is wrong with a column of one row."""

    def __init__(self, column: str, detail: str) -> None:
        super().__init__(detail)
        self.column = column
        self.detail = detail


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a question, in the order shown."""

    stem: str
    """Without the options, if they stand in it."""
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    """What the source calls each, such as its letter; None if it only orders them."""


def read_options(stem: str, columns: str | Sequence[str] | None, record: Record) -> ReadOptions:
    """The options in `columns` of a record, or at the end of `stem` if there are none; raises `CellError`."""
    if columns is None:
        found = split_marked(stem)
        if found is None:
            raise CellError("", "the question holds no options behind letters or numbers, and no column does")
        return _checked(found, "")
    if isinstance(columns, str):
        try:
            value = unpack(get(record, columns))
        except KeyError:
            raise CellError(columns, "is missing") from None
        return _checked(_of_value(stem, value, columns), columns)
    return _checked(_of_columns(stem, columns, record), columns[0])


def _of_columns(stem: str, columns: Sequence[str], record: Record) -> ReadOptions:
    """A column each; the last ones may be empty, for a question with fewer options."""
    texts = []
    for column in columns:
        try:
            texts.append(_text(get(record, column)))
        except KeyError:
            texts.append("")
    filled = max((place for place, text in enumerate(texts, start=1) if text), default=0)
    if "" in texts[:filled]:
        raise CellError(columns[texts.index("")], "is empty, and an option behind it is not")
    return ReadOptions(stem, tuple(texts[:filled]), tuple(columns[:filled]))


def _of_value(stem: str, value: Any, column: str) -> ReadOptions:
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(each, Mapping) for each in value):
            return ReadOptions(stem, *_of_mappings(value, column))
        return ReadOptions(stem, *_without_marks([_text(each) for each in value]))
    if isinstance(value, str):
        found = split_marked(value, bare=True)
        if found is None:
            raise CellError(column, f"is {value!r:.60}, no list, no mapping, and no lines behind letters or numbers")
        return ReadOptions(stem, found.texts, found.labels)
    if isinstance(value, Mapping):
        inner = [value.get(name) for name in ("label", "text")]
        if all(isinstance(each, list) for each in inner):
            labels, texts = inner
            return ReadOptions(stem, tuple(map(_text, texts or [])), tuple(map(_text, labels or [])))
        # A Parquet file holds a field for every letter that some question has.
        filled = {str(label): text for label, text in value.items() if text is not None}
        names = sorted(filled, key=lambda label: (len(label), label))
        return ReadOptions(stem, tuple(_text(filled[label]) for label in names), tuple(names))
    raise CellError(column, f"is {value!r:.60}, no list, no mapping, and no text")


def _of_mappings(entries: Sequence[Mapping[str, Any]], column: str) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    name = next((each for each in _NAMES if all(each in entry for entry in entries)), None)
    text = next((each for each in _TEXTS if all(each in entry for entry in entries)), None)
    if text is None:
        # One field each, `{"A": "First"}`; a Parquet file gives each option the letters of all, the others empty.
        filled = [[(label, value) for label, value in entry.items() if value is not None] for entry in entries]
        if all(len(fields) == 1 for fields in filled):
            return tuple(_text(fields[0][1]) for fields in filled), tuple(str(fields[0][0]) for fields in filled)
        raise CellError(column, f"holds {entries[0]!r:.60}, which has no field {', '.join(_TEXTS)}")
    texts = tuple(_text(entry[text]) for entry in entries)
    return texts, None if name is None else tuple(_text(entry[name]) for entry in entries)


def _without_marks(texts: list[str]) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """The texts without their own letters or numbers, if each has the next one, `A. First`, `B. Second`."""
    if not texts or _OWN_MARK.match(texts[0]) is None:
        return tuple(texts), None
    marks = [_OWN_MARK.match(text) for text in texts]
    labels = [mark[1] for mark in marks if mark is not None]
    if len(labels) == len(texts) > 1 and labels[0] in ("A", "a", "1") and _follow(labels):
        return tuple(text[mark.end() :] for text, mark in zip(texts, marks, strict=True) if mark), tuple(labels)
    return tuple(texts), None


def split_marked(text: str, *, bare: bool = False) -> ReadOptions | None:
    """A text that ends in options behind letters or numbers, `A) ... B) ...` or `1. ...`; None if it does not.

    Marks at the beginning of lines come first. Of a list of numbers and a later one of letters the letters are meant:
    the numbers are statements. `bare` also takes letters at the beginning of lines without a mark.
    """
    for pattern in (_AT_LINES, _IN_LINES, *([_BARE] if bare else [])):
        chains = list(_chains(list(pattern.finditer(text))))
        if chains:
            best = max(chains, key=lambda chain: (not chain[0][1].isdigit(), len(chain), chain[0].start()))
            ends = [after.start() for _, after in pairwise(best)] + [len(text)]
            texts = tuple(text[mark.end() : end].strip() for mark, end in zip(best, ends, strict=True))
            return ReadOptions(text[: best[0].start()].strip(), texts, tuple(mark[1] for mark in best))
    return None


def _chains(marks: Sequence[re.Match[str]]) -> Iterable[list[re.Match[str]]]:
    """From each A, a or 1 the marks that count on from it; those of two marks or more."""
    for place, first in enumerate(marks):
        if first[1] not in ("A", "a", "1"):
            continue
        chain = [first]
        for mark in marks[place + 1 :]:
            if _follow([chain[-1][1], mark[1]]):
                chain.append(mark)
        if len(chain) > 1:
            yield chain


def _follow(labels: Sequence[str]) -> bool:
    """Whether each is the next letter, or the next number, of the one before."""
    return all(
        int(two) == int(one) + 1 if one.isdigit() and two.isdigit() else one + two in string.ascii_letters
        for one, two in pairwise(labels)
    )


def _checked(found: ReadOptions, column: str) -> ReadOptions:
    if len(found.texts) < 2:
        raise CellError(column, f"a question needs at least two options, this one has {len(found.texts)}")
    if "" in found.texts:
        raise CellError(column, f"option {found.texts.index('') + 1} is empty")
    if found.labels is not None and len(found.labels) != len(found.texts):
        raise CellError(column, f"holds {len(found.labels)} labels and {len(found.texts)} texts")
    return found


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()
