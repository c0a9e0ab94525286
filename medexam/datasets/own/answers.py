"""Which options are right: one reading of the answers of all rows, never a guess about one.

An answer may be a letter, a number from 0 or from 1, an option's text, or a mark for each option. The reading is that
which fits the most rows. Where several fit equally well and differ, the user is asked.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from string import ascii_lowercase, ascii_uppercase
from types import MappingProxyType
from typing import Any

from medexam.datasets.own.labels import Numbers, OpenFieldError, ReadOptions, in_order
from medexam.datasets.own.texts import unpack
from medexam.datasets.rows import parse_whole_number
from medexam.errors import DatasetError
from medexam.specs.columns import ColumnsSpec

_SEVERAL = re.compile(r"\s*[,;|]\s*")
_BARE = str.maketrans("", "", "()[].: ")
_FLOAT = re.compile(r"(?<=\d)\.0+\Z")
_CALLED = re.compile(
    r"(?:the )?(?:correct |right )?(?:option|choice|answer|opci[oó]n|opzione|op[çc][ãa]o|alternativa|antwort)"
    r"(?: is)?[ :_-]*(?=\W*\w\W*$)",
    re.IGNORECASE,
)
"""Words before a letter, as in `Option B`."""
_BOTH = re.compile(
    r"[(\[]?(?P<before>[A-Za-z]|\d{1,2})(?:[)\].:、．：]| [-–])\s*(?P<behind_it>.*\S)"  # noqa: RUF001 - marks of Chinese
    r"|(?P<text>.*\S)\s*[(\[](?P<after>[A-Za-z])[)\]]",
    re.DOTALL,
)
WAYS: Mapping[str, str] = MappingProxyType(
    {
        "named": "the option's own letter, number or name",
        "letter": "letters",
        "zero": "numbers from 0",
        "one": "numbers from 1",
        "both": "a letter or number with the option's text",
        "text": "the options' texts",
        "one_hot": "a 1 for each right option",
    }
)
"""How answers may be read -> what messages call that."""
_BY_TEXT = ("both", "text")
"""Ways that look at the options' texts."""
_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "letter": ("named", "letter", "both"),
    "number": ("named", "zero", "one"),
    "text": ("both", "text"),
    "one_hot": ("one_hot",),
}


_MARKS = {
    **dict.fromkeys(("1", "1.0", "true", "100", "100.0", "yes", "x"), True),
    **dict.fromkeys(("0", "0.0", "false", "", "none", "no", "nan"), False),
}


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """The answer of one row beside its options."""

    place: str
    """The row as messages call it."""
    value: Any
    options: ReadOptions


def read_answer_column(
    answers: Sequence[RawAnswer], columns: ColumnsSpec, column: str
) -> tuple[str, Sequence[Numbers | None]]:
    """Choose the way that fits the answers, a key of `WAYS`, and read the right options of each row; None if a row
    names none.

    Raises `DatasetError` if no way fits, and `OpenFieldError` if several do and differ.
    """
    if columns.answer_as == "letter":
        answers = [
            replace(answer, value=list(answer.value.strip())) if is_word_of_letters(answer.value) else answer
            for answer in answers
        ]
    ways = ("zero", "one") if columns.numbering else _ALLOWED.get(columns.answer_as or "", tuple(WAYS))
    if any(_is_mixed(answer.options) for answer in answers):
        ways = tuple(way for way in ways if way not in ("letter", "zero", "one"))
        if not ways:
            raise DatasetError(
                f"column {column}: the letters of options are out of order, so a number may not be an option's place"
            )
    readings: dict[str, tuple[Numbers | None, ...]] = {}
    # Options' texts are looked at last, and no further than a row that they do not fit where another way fits all.
    for way in sorted(ways, key=_BY_TEXT.__contains__):
        numbers = _read_all(way, answers)
        if way in _BY_TEXT and any(None not in reading for reading in readings.values()):
            numbers = takewhile(lambda reading: reading is not None, numbers)
        readings[way] = tuple(numbers)
    if columns.numbering:
        _check_stated(columns.numbering, readings, column)
        ways = (columns.numbering,)
    fits = {way: sum(reading is not None for reading in readings[way]) for way in ways}
    most = max(fits.values())
    if not most:
        first = answers[0]
        options = " / ".join(first.options.texts)
        raise DatasetError(
            f"column {column}: no answer names an option; {first.place} has {first.value!r:.60}, and its options are "
            f"{options:.120}; name the column with columns: {{answer: ...}}"
        )
    best = [way for way in ways if fits[way] == most]
    if not columns.numbering:
        _check_numbering(answers, readings, best[0], column)
    # What names options is no place among them, but it may be the text of another.
    rivals = best[1:] if best[0] != "named" else [way for way in best if way == "text"]
    if any(readings[way] != readings[best[0]] for way in rivals):
        best_readings = {way: readings[way] for way in best}
        raise OpenFieldError(f"column {column}: ", *_ask(answers, best_readings), best_readings)
    return best[0], readings[best[0]]


def _read_all(way: str, answers: Sequence[RawAnswer]) -> Iterable[Numbers | None]:
    """Yield what each answer means in one way of reading."""
    numbers_by_key: dict[tuple[object, ...], Numbers | None] = {}
    for answer in answers:
        options = answer.options
        if way in _BY_TEXT:
            yield _read(way, answer.value, options)
            continue
        # Few answers differ without the options' texts, and each of them is read once.
        key = (repr(answer.value), len(options.texts), options.labels)
        if key not in numbers_by_key:
            numbers_by_key[key] = _read(way, answer.value, options)
        yield numbers_by_key[key]


def _ask(answers: Sequence[RawAnswer], readings: Mapping[str, Sequence[Numbers | None]]) -> tuple[str, str, str]:
    """Describe the first row in which several readings differ, the field that decides, and its values."""
    place = next(place for place in range(len(answers)) if len({numbers[place] for numbers in readings.values()}) > 1)
    example = answers[place]
    meanings = ", ".join(
        f"{' or '.join(map(str, numbers[place] or ['none']))} as {WAYS[way]}" for way, numbers in readings.items()
    )
    field, values = "answer_as", "one_hot or number" if "one_hot" in readings else "letter, number or text"
    if {*readings} == {"zero", "one"}:
        field, values = "numbering", "zero or one"
    return f"{example.value!r:.60} of {example.place} is option {meanings}", field, values


def _rows_only(way: str, other: str, readings: Mapping[str, Sequence[Numbers | None]]) -> list[int]:
    """List the places of the rows that one way reads, and the other does not."""
    pairs = zip(readings[way], readings[other], strict=True)
    return [
        place for place, (numbers, other_numbers) in enumerate(pairs) if numbers is not None and other_numbers is None
    ]


def _check_stated(stated: str, readings: Mapping[str, Sequence[Numbers | None]], column: str) -> None:
    """Raise `DatasetError` if counting from the other number reads every row that the stated one does, and more."""
    other = "one" if stated == "zero" else "zero"
    if _rows_only(other, stated, readings) and not _rows_only(stated, other, readings):
        rows = len(readings[other])
        count, other_count = (sum(reading is not None for reading in readings[way]) for way in (stated, other))
        fitting = f"all {rows:,} rows" if other_count == rows else f"{other_count:,} of {rows:,} rows"
        first = {"zero": 0, "one": 1}
        raise DatasetError(
            f"column {column}: counting from {first[other]} fits {fitting}, and from {first[stated]} only {count:,}: "
            f"set columns: {{numbering: {other}}}"
        )


def _check_numbering(
    answers: Sequence[RawAnswer], readings: Mapping[str, Sequence[Numbers | None]], way: str, column: str
) -> None:
    """Raise `OpenFieldError` if some rows can only count from 0, and others only from 1."""
    other = {"zero": "one", "one": "zero"}.get(way)
    if other is None or other not in readings:
        return
    rows, other_rows = _rows_only(way, other, readings), _rows_only(other, way, readings)
    if rows and other_rows:
        example, other_example = (
            f"{answers[places[0]].value!r} of {answers[places[0]].place}" for places in (rows, other_rows)
        )
        facts = f"{example} can only be one of {WAYS[way]}, and {other_example} only one of {WAYS[other]}"
        rival_readings = {name: readings[name] for name in (way, other)}
        raise OpenFieldError(f"column {column}: ", facts, "numbering", "zero or one", rival_readings)


def is_word_of_letters(value: Any) -> bool:
    """Return whether a value may be several letters in one word, such as `ACD`."""
    word = value.strip() if isinstance(value, str) else ""
    return len(word) > 1 and word.isascii() and word.isalpha()


def _is_mixed(options: ReadOptions) -> bool:
    """Return whether the options have letters or numbers out of order: then it is not told what counting them means."""
    labels = options.labels or ()
    return all(len(label) < 3 for label in labels) and [*labels] != in_order(labels)


def _read(way: str, value: Any, options: ReadOptions) -> Numbers | None:
    """Read the options that an answer means in one way of reading; None if it means none."""
    if way == "one_hot":
        return _find_marked(value, options)
    number_of = _NUMBER_OF[way]
    # A text of an option may hold commas, so it is taken apart only if it is a list.
    text_number = number_of(value, options) if way in _BY_TEXT else None
    numbers = (
        [number_of(entry, options) for entry in _items(value, cut=way not in _BY_TEXT)]
        if text_number is None
        else [text_number]
    )
    distinct_numbers = {number for number in numbers if number is not None}
    # An option that is named twice shows that this is not what the answer means.
    return tuple(sorted(distinct_numbers)) if distinct_numbers and len(distinct_numbers) == len(numbers) else None


def _items(value: Any, *, cut: bool) -> Sequence[Any]:
    """List what an answer names, one by one: a list, or a text like `A,C` if it is to be cut."""
    value = unpack(value)
    if isinstance(value, str) and cut:
        return [part for part in _SEVERAL.split(value.strip()) if part]
    return value if isinstance(value, (list, tuple)) else [value] if cut and value is not None else []


def _whole(item: Any) -> int | None:
    """Return a number, also as pandas writes it where a column has empty cells: 2.0."""
    return parse_whole_number(_FLOAT.sub("", _normal(item)) if isinstance(item, str) else item)


def _normal(text: str) -> str:
    """Strip a letter or number of what only its writing adds: `①` is 1."""
    return text.strip() if text.isascii() else unicodedata.normalize("NFKC", text).strip()


def _by_label(item: Any, options: ReadOptions) -> int | None:
    labels = {label.casefold(): place for place, label in enumerate(options.labels or (), start=1)}
    number = _whole(item)
    item_label = (_normal(str(item)) if number is None else str(number)).casefold()
    return labels.get(item_label, labels.get(item_label.translate(_BARE)))


def _by_letter(item: Any, options: ReadOptions) -> int | None:
    letter = _CALLED.sub("", _normal(str(item))).translate(_BARE).upper()
    number = ascii_uppercase.find(letter) + 1 if letter else 0
    return number if len(letter) == 1 and 1 <= number <= len(options.texts) else None


def _by_number(item: Any, options: ReadOptions, first: int) -> int | None:
    number = _whole(item)
    return number - first + 1 if number is not None and first <= number < first + len(options.texts) else None


def _by_letter_and_text(item: Any, options: ReadOptions) -> int | None:
    """Find the option whose letter or number, and whose text, both are written; one alone is no answer."""
    parts = _BOTH.fullmatch(str(item).strip())
    place = None if parts is None else _by_text(parts["behind_it"] or parts["text"], options)
    if parts is None or place is None:
        return None
    label = "" if options.labels is None else options.labels[place - 1].casefold()
    item_label = (parts["before"] or parts["after"]).casefold()
    return place if item_label in (label, ascii_lowercase[place - 1 : place], str(place)) else None


def _by_text(value: Any, options: ReadOptions) -> int | None:
    """Find the only option of the same words; if there is none, in any case; or else without a full stop."""
    wording = " ".join(str(value).split())
    texts = [" ".join(text.split()) for text in options.texts]
    plain_forms: tuple[Callable[[str], str], ...] = (str, str.casefold, lambda text: text.casefold().rstrip(". "))
    for plain in plain_forms:
        matches = [place for place, text in enumerate(texts, start=1) if plain(text) == plain(wording)]
        if len(matches) == 1 and plain(wording):
            return matches[0]
    return None


def _find_marked(value: Any, options: ReadOptions) -> Numbers | None:
    marks = unpack(value)
    if not isinstance(marks, (list, tuple)) or len(marks) < len(options.texts):
        return None
    read = [_MARKS.get(str(mark).strip().casefold()) for mark in marks]
    right = tuple(place for place, mark in enumerate(read, start=1) if mark)
    return right if None not in read and right and right[-1] <= len(options.texts) else None


_NUMBER_OF: Mapping[str, Callable[[Any, ReadOptions], int | None]] = {
    "named": _by_label,
    "letter": _by_letter,
    "zero": partial(_by_number, first=0),
    "one": partial(_by_number, first=1),
    "both": _by_letter_and_text,
    "text": _by_text,
}
