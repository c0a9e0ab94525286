"""Which options are right: one reading of the answers of all rows, never a guess about one.

A reading is that which fits the most rows. Where several fit equally well and differ, the user is asked.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any

from medexam.datasets.own.names import in_order, pattern
from medexam.datasets.own.options import Numbers, OpenFieldError, ReadOptions
from medexam.datasets.own.texts import unpack
from medexam.datasets.rows import parse_whole_number
from medexam.errors import DatasetError
from medexam.specs.dataset import ColumnsSpec

WAYS: Mapping[str, str] = MappingProxyType(
    {
        "named": "the option's own letter, number or name",
        "letter": "letters",
        "zero": "numbers from 0",
        "one": "numbers from 1",
        "text": "the options' texts",
        "one_hot": "a 1 for each right option",
    }
)
"""How answers may be read -> what messages call that."""
_ALLOWED = {"letter": ("named", "letter", "text"), "number": ("named", "zero", "one"), "": tuple(WAYS)}
"""What a spec says of answers -> the ways that are tried; others are ways themselves."""
_SEVERAL = re.compile(r"\s*[,;|/&]\s*(?:(?:and|y|e|und|et|or)\s)?|\s+(?:(?:and|y|e|und|et|or)\s+)?", re.IGNORECASE)
"""What stands between several answers."""
_BARE = str.maketrans("", "", "()[].: ")
_CALLED = r"(?:the )?(?:correct |right )?{}(?: is)?[ :_-]*(?=\W*\w\W*$)"
"""Words before a letter, as in `Option B`."""
_BOTH = re.compile(
    r"[(\[]?(?P<before>[A-Za-z]|\d{1,2})(?:[)\].:、．：]| [-–])\s*(?P<behind_it>.*\S)"  # noqa: RUF001 - marks of Chinese
    r"|(?P<text>.*\S)\s*[(\[](?P<after>[A-Za-z])[)\]]",
    re.DOTALL,
)
"""A label and a text, in either order."""
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
    readings: dict[str, Sequence[Numbers | None]] = {}
    # Options' texts are looked at last, and no further than a row that they do not fit where another way fits all.
    for way in sorted(ways, key="text".__eq__):
        numbers = _read_all(way, answers)
        if way == "text" and any(None not in reading for reading in readings.values()):
            numbers = takewhile(lambda reading: reading is not None, numbers)
        readings[way] = tuple(numbers)
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
    raise OpenFieldError(f"column {column}: ", facts, field, values, map(readings.__getitem__, rivals))


def _read_all(way: str, answers: Sequence[ReadOptions]) -> Iterable[Numbers | None]:
    """Yield what each answer means in one way of reading; None if it means nothing, or one option twice."""
    read = {"text": _read_texts, "one_hot": _read_marks}.get(way, _read_names)
    places_by_key: dict[object, Numbers | None] = {}
    for options in answers:
        # Few answers differ without the options' texts, and each of them is read once.
        key = None if way == "text" else (repr(options.answer), len(options.texts), options.labels)
        if key is None or key not in places_by_key:
            places = read(options.answer, options, way)
            distinct = {place for place in places if place}
            places_by_key[key] = tuple(sorted(distinct)) if distinct and len(distinct) == len(places) else None
        yield places_by_key[key]


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
            name = (pattern("called", _CALLED).sub("", name) if way == "letter" else name).translate(_BARE)
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
    for plain in (str, str.casefold, lambda text: text.casefold().rstrip(". ")):
        matches = [place for place, text in enumerate(texts, start=1) if plain(text) == plain(wording)]
        if len(matches) == 1 and plain(wording):
            return matches[0]
    parts = _BOTH.fullmatch(wording)
    place = None if parts is None else _by_text(parts["behind_it"] or parts["text"], options)
    if parts is None or place is None:
        return None
    names = {options.labels[place - 1].casefold() if options.labels else "", ascii_lowercase[place - 1], str(place)}
    return place if (parts["before"] or parts["after"]).casefold() in names else None


def _read_marks(value: Any, options: ReadOptions, _way: str) -> list[int | None]:
    """Read a mark for each option, and perhaps for options that the row lacks."""
    marks = [_MARKS.get(str(mark).strip().casefold()) for mark in items_of(value)]
    right: list[int | None] = [place for place, mark in enumerate(marks, start=1) if mark]
    is_whole = len(marks) >= len(options.texts) and None not in marks
    return right if is_whole and right and right[-1] <= len(options.texts) else []  # type: ignore[operator]
