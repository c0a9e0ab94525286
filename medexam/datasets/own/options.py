"""What the options of a row are, and which of them are right: one reading of all rows, never a guess about one.

Options stand in columns, a list, a mapping, or behind letters at the end of a text. Where several readings fit equally
well and differ, the user is asked.
"""

import datetime
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from string import ascii_lowercase
from typing import Any

from medexam.datasets.own.tables import CellError, TableRow, try_each, value_of
from medexam.datasets.own.texts import ALPHABETS, in_order, pattern, plain_name, shift, unpack, word_lists
from medexam.datasets.rows import RowFault, parse_whole_number
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
        self, where: str, facts: str, field: str, values: str, ways: Sequence[Mapping[int, Numbers | None]] = ()
    ) -> None:
        super().__init__(f"{where}{facts}: say which with columns: {{{field}: {values}}}")
        self.field, self.detail, self.ways = field, f"{values}: {facts}", ways
        """`ways`: number of a row -> its right options, for each way to read answers."""


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
    labels: tuple[str, ...] = ()
    if isinstance(columns, str):
        cell = unpack(value_of(row.record, columns))
        pairs = _pairs_of(cell.split(spec.between) if spec.between and isinstance(cell, str) else cell, columns)
        texts = [_option_text(text, columns) for _, text in pairs]
        labels = tuple(_option_text(label, columns) for label, _ in pairs)
        columns = (columns,)
    elif spec.shuffled:
        cells = [(column, unpack(value_of(row.record, column))) for column in columns]
        listed = [(column, each) for column, cell in cells for each in (cell if isinstance(cell, list) else [cell])]
        texts = [_option_text(each, column) for column, each in listed]
    else:
        texts = [_option_text(value_of(row.record, column), column) for column in columns]
        labels = tuple(columns)
    # The cells behind the last option are empty or say so; where an option is a sign, a dash is one.
    if not _NONE_OR_DASH.isdisjoint(texts):
        has_signs = any(text not in _NONE_OR_DASH and not any(map(str.isalnum, text)) for text in texts)
        texts = ["" if text in (_NONE if has_signs else _NONE_OR_DASH) else text for text in texts]
        while texts and not texts[-1]:
            texts.pop()
    return ReadOptions(row, stem, tuple(texts), labels[: len(texts)] if any(labels) else None, columns[0])


def _pairs_of(value: Any, column: str) -> list[tuple[Any, Any]]:
    """List the options that one cell holds, each behind what it is called; None if they are only ordered."""
    if isinstance(value, str):
        lead, texts_in, marks = split_marked(value, bare=True) or ("", (), ())
        if lead or not marks:
            raise CellError(column, f"is {value!r:.60}, no list, no mapping, and no lines that begin with letters")
        return list(zip(marks, texts_in, strict=True))
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
    text = next((shared[alias] for alias in names["texts"] if alias in shared), None)
    label = next((shared[alias] for alias in names["labels"] if alias in shared and shared[alias] != text), None)
    if text is not None:
        return [(None if label is None else each[label], each[text]) for each in value]
    # One field each, `{"A": "First"}`; a Parquet file gives each option the letters of all, the others empty.
    fields = [[(name, text) for name, text in each.items() if text is not None] for each in value]
    if any(len(each) != 1 for each in fields):
        raise CellError(column, f"holds {value[0]!r:.60}, which has no field {', '.join(names['texts'])}")
    return [each[0] for each in fields]


def _option_text(value: Any, column: str) -> str:
    if isinstance(value, str):
        return value.strip()
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, (list, tuple, Mapping, bytes)):
        raise CellError(column, f"holds {value!r:.60}, which is not the text of an option")
    if isinstance(value, (datetime.date, datetime.time)):
        raise CellError(column, f"holds the date {value}: spreadsheets turn 1/2 into a date; format the column as text")
    return str(value).strip()


def settle_options(settled: list[ReadOptions | RowFault], spec: ColumnsSpec) -> list[ReadOptions | RowFault]:
    """Strip labels that run through the rows; raise `OpenFieldError` if some have none."""
    labels = [own_labels(row.texts) for row in settled if isinstance(row, ReadOptions) and row.texts]
    runs = [each for each in labels if is_run(each)]
    bare_count = sum(not any(each) for each in labels)
    if spec.marks == "labels" or (spec.marks is None and 2 * len(runs) > len(labels)):
        if spec.marks is None and bare_count > (1 - _LABELLED) * len(labels):
            facts = f"the options of {len(runs):,} rows begin with letters or numbers in order"
            raise OpenFieldError("", f"{facts}, and those of {bare_count:,} do not", "marks", "labels or text")
        settled = try_each(_without_labels, settled)
    return try_each(lambda row: _check(row, shuffled=spec.shuffled), settled)


def own_labels(texts: Sequence[str]) -> tuple[str, ...]:
    """Find the letter or number before each option, without a sign if all have one in order; an empty text for none."""
    matches = [_OWN_LABEL.match(text) for text in texts]
    bare = tuple(text.partition(" ")[0] for text in texts) if len(texts) >= _FEW and not any(matches) else ()
    if is_run(bare) and "".join(bare).isalpha() and [*bare] == in_order(bare):
        rests = {text.partition(" ")[2].strip() for text in texts} - {""}
        if len(rests) == len(texts):
            return bare
    return tuple(plain(match[match.lastindex or 1]) if match else "" for match in matches)


def _without_labels(row: ReadOptions) -> ReadOptions:
    labels = own_labels(row.texts)
    if not any(labels):
        return row
    if not is_run(labels) or (row.labels is not None and [*labels] != in_order(labels)):
        letters = ", ".join(label or "none" for label in labels)
        raise CellError(row.column, f"has options that begin with {letters}, which are not in their order")
    cut = (_OWN_LABEL.subn("", text, count=1) for text in row.texts)
    texts = tuple(text if count else text.partition(" ")[2].strip() for text, count in cut)
    return replace(row, texts=texts, labels=row.labels or labels)


def _check(row: ReadOptions, *, shuffled: bool) -> ReadOptions:
    """Check that each option has a text, and that the stem does not repeat the options."""
    if len(row.texts) < 2:
        raise CellError(row.column, f"a question needs at least two options, this one has {len(row.texts)}")
    if "" in row.texts:
        raise CellError(row.column, f"option {row.texts.index('') + 1} is empty")
    if row.column and row.texts[-1] in row.stem:
        with suppress(CellError):
            inside = split_marked(row.stem)
            if inside is not None and inside[0] and inside[1] == row.texts:
                row = replace(row, stem=inside[0])
    if shuffled:
        order = sorted(row.texts, key=lambda text: hashlib.sha256(f"{row.stem}\0{text}".encode()).digest())
        return replace(row, texts=tuple(order), labels=None)
    return row


WAYS: Mapping[str, str] = {
    "named": "the option's own letter, number or name",
    "letter": "letters",
    "zero": "numbers from 0",
    "one": "numbers from 1",
    "text": "the options' texts",
    "one_hot": "a 1 for each right option",
}
"""How answers may be read -> what messages call that."""
_ALLOWED = {"letter": ("named", "letter", "text"), "number": ("named", "zero", "one"), "": tuple(WAYS)}
"""What a spec says of answers -> the ways that are tried; others are ways themselves."""
_SEVERAL = re.compile(r"\s*[,;|/&+]\s*(?:(?:and|y|e|und|et|or)\s)?|\s+(?:(?:and|y|e|und|et|or)\s+)?", re.IGNORECASE)
"""What stands between several answers."""
_MARKS_OF_LABELS = str.maketrans("", "", "()[].: ")
_CALLED = r"(?:the )?(?:correct |right )?{}(?: is)?[ :_-]*(?=\W*\w\W*$)"
"""Words before a letter, as in `Option B`."""
_MARKS = {
    **dict.fromkeys(("1", "1.0", "true", "100", "100.0", "yes", "x"), True),
    **dict.fromkeys(("0", "0.0", "false", "", "none", "no", "nan"), False),
}


def read_answer_column(
    answers: Sequence[ReadOptions], columns: ColumnsSpec, column: str
) -> tuple[str, Sequence[Numbers | None]]:
    """Choose the way that fits the answers, a key of `WAYS`, and read the right options of each row; None if a row
    names none.

    Raises `DatasetError` if no way fits, and `OpenFieldError` if several do and differ.
    """
    stated = columns.answer_as or ""
    ways = ("zero", "one") if columns.numbering else _ALLOWED.get(stated, (stated,))
    labels = {options.labels or () for options in answers}
    if any(all(len(label) < 3 for label in each) and [*each] != in_order(each) for each in labels):
        # Letters out of order: it is not told what counting them means.
        ways = tuple(way for way in ways if way not in ("letter", "zero", "one"))
    # Few answers differ without the options' texts, and each of them is read once.
    numbers_of_keys: dict[object, int] = {}
    keys = [
        numbers_of_keys.setdefault((repr(each.answer), len(each.texts), each.labels), len(numbers_of_keys))
        for each in answers
    ]
    firsts = dict(zip(reversed(keys), reversed(answers), strict=True))
    readings: dict[str, Sequence[Numbers | None]] = {}
    for way in (way for way in ways if way != "text"):
        by_key = {key: _read_answer(way, each) for key, each in firsts.items()}
        readings[way] = [by_key[key] for key in keys]
    if "text" in ways:
        # No further than a row that texts do not fit where another way fits all.
        texts: Iterable[Numbers | None] = (_read_answer("text", each) for each in answers)
        is_rival = any(None not in reading for reading in readings.values())
        readings["text"] = [*(takewhile(lambda reading: reading is not None, texts) if is_rival else texts)]
    fits = {way: sum(reading is not None for reading in readings[way]) for way in ways}
    best = [way for way in ways if fits[way] == max(fits.values()) > 0]
    if not best:
        first = answers[0]
        raise DatasetError(
            f"column {column}: no answer names an option; {first.row.place} has {first.answer!r:.60}, and its options "
            f"are {' / '.join(first.texts):.120}; name the column with columns: {{answer: ...}}"
        )
    if columns.numbering and columns.numbering not in best:
        raise DatasetError(
            f"column {column}: {WAYS[best[0]]} fit {fits[best[0]]:,} rows, and {WAYS[columns.numbering]} only "
            f"{fits[columns.numbering]:,}: set columns: {{numbering: {best[0]}}}"
        )
    way = columns.numbering or best[0]
    # What names options is no place among them, but it may be the text of another.
    rivals = [way] if columns.numbering else [each for each in best if way != "named" or each in ("named", "text")]
    differing = next((n for n in range(len(answers)) if len({readings[each][n] for each in rivals}) > 1), None)
    if differing is None:
        return way, readings[way]
    meanings = [f"{' or '.join(map(str, readings[each][differing] or ['none']))} as {WAYS[each]}" for each in rivals]
    facts = f"{answers[differing].answer!r:.60} of {answers[differing].row.place} is option {', '.join(meanings)}"
    field, values = "answer_as", "one_hot or number" if "one_hot" in rivals else "letter, number or text"
    if {*rivals} == {"zero", "one"}:
        field, values = "numbering", "zero or one"
    rows = [options.row.number for options in answers]
    ways_of_rows = [dict(zip(rows, readings[each], strict=False)) for each in rivals]
    raise OpenFieldError(f"column {column}: ", facts, field, values, ways_of_rows)


def _read_answer(way: str, options: ReadOptions) -> Numbers | None:
    """Read what the answer means in one way of reading; None if it means nothing, or one option twice."""
    read = {"text": _read_texts, "one_hot": _read_marks}.get(way, _read_names)
    places = read(options.answer, options, way)
    distinct = {place for place in places if place}
    return tuple(sorted(distinct)) if distinct and len(distinct) == len(places) else None


def items_of(value: Any) -> Sequence[Any]:
    """List the answers of a list, or of a text like `A,C`."""
    value = unpack(value)
    return value if isinstance(value, (list, tuple)) else [*filter(None, _SEVERAL.split(str(value).strip()))]


def _read_names(value: Any, options: ReadOptions, way: str) -> list[int | None]:
    """Read letters, numbers or names: one or several; letters also in one word, such as `BD`."""
    count = len(options.texts)
    names = {
        "named": [_plain(label) for label in options.labels or ()],
        "letter": list(ascii_lowercase[:count]),
        "zero": [str(place) for place in range(count)],
        "one": [str(place) for place in range(1, count + 1)],
    }[way]

    def find(item: Any) -> int | None:
        name = _plain(item)
        if name not in names and way in ("named", "letter"):
            name = (pattern("called", _CALLED).sub("", name) if way == "letter" else name).translate(_MARKS_OF_LABELS)
        return names.index(name) + 1 if name in names else None

    option, items = find(value), items_of(value)
    if way == "letter" and len(items) == 1 and str(items[0]).isascii() and str(items[0]).isalpha():
        items = [*str(items[0])]
    return [option] if option else [find(item) for item in items]


def _plain(item: Any) -> str:
    """Write a letter, number or name alike: `①` is 1, and so is 1.0, which pandas writes beside empty cells."""
    text = str(item)
    text = (text if text.isascii() else unicodedata.normalize("NFKC", text)).strip()
    number = parse_whole_number(re.sub(r"(?<=\d)\.0+\Z", "", text))
    return text.casefold() if number is None else str(number)


def _read_texts(value: Any, options: ReadOptions, _way: str) -> list[int | None]:
    """Read the text of an option, which may hold commas; or a list of texts."""
    option = _by_text(value, options)
    items = unpack(value) if option is None else [value]
    return [_by_text(item, options) for item in items] if isinstance(items, (list, tuple)) else []


def _by_text(value: Any, options: ReadOptions) -> int | None:
    """Find the only option of the same words, perhaps without a full stop, or behind its letter or number."""
    wording = " ".join(str(value).split())
    texts = [" ".join(text.split()) for text in options.texts]
    for same in (str, lambda text: text.casefold().rstrip(". ")):
        matches = [place for place, text in enumerate(texts, start=1) if same(text) == same(wording)]
        if len(matches) == 1 and same(wording):
            return matches[0]
    label = _OWN_LABEL.match(wording)
    place = None if label is None else _by_text(wording[label.end() :], options)
    if label is None or place is None:
        return None
    names = {options.labels[place - 1].casefold() if options.labels else "", ascii_lowercase[place - 1], str(place)}
    return place if plain(label[label.lastindex or 1]).casefold() in names else None


def _read_marks(value: Any, options: ReadOptions, _way: str) -> list[int | None]:
    """Read a mark for each option, and perhaps for options that the row lacks."""
    marks = [_MARKS.get(str(mark).strip().casefold()) for mark in items_of(value)]
    right: list[int | None] = [place for place, mark in enumerate(marks, start=1) if mark]
    are_marks = len(marks) >= len(options.texts) and None not in marks
    return right if are_marks and right and right[-1] <= len(options.texts) else []  # type: ignore[operator]
