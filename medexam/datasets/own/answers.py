"""Which options are right: one reading of the answers of all rows, never a guess about one.

An answer may be a letter, a number from 0 or from 1, an option's text, or a mark for each option. The reading is that
which fits the most rows. Where several fit equally well and differ, the user is asked.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from medexam.datasets.own.labels import ReadOptions
from medexam.datasets.own.options import OpenFieldError
from medexam.datasets.own.texts import unpack
from medexam.datasets.rows import parse_whole_number
from medexam.errors import DatasetError
from medexam.specs.columns import ColumnsSpec

Numbers = tuple[int, ...]
"""The numbers of right options, from 1, in ascending order; at least one."""
_SEVERAL = re.compile(r"\s*[,;|]\s*")
_BARE = str.maketrans("", "", "()[].: ")
_FLOAT = re.compile(r"(\d+)\.0+")
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
_ALLOWED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "letter": ("named", "letter", "both"),
        "number": ("named", "zero", "one"),
        "text": ("both", "text"),
        "one_hot": ("one_hot",),
    }
)


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """The answer of one row beside its options."""

    place: str
    """The row as messages call it."""
    value: Any
    options: ReadOptions


class OpenAnswersError(OpenFieldError):
    """Answers that can be read in several ways, which differ."""

    def __init__(
        self, column: str, facts: str, field: str, values: str, readings: Mapping[str, Sequence[Numbers | None]]
    ) -> None:
        super().__init__(f"column {column}: ", facts, field, values)
        self.readings = readings
        """Way -> the right options of each row in it."""


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """The right options of all rows."""

    way: str
    """A key of `WAYS`."""
    numbers: tuple[Numbers | None, ...]
    """Of each row; None if its answer names no option."""


def read_answers(answers: Sequence[RawAnswer], columns: ColumnsSpec, column: str) -> ReadAnswers:
    """The reading of `answers` that fits; raises `DatasetError` that asks if none does, or several that differ."""
    if columns.answer_as == "letter":
        answers = [replace(each, value=_apart(each.value)) for each in answers]
    ways = ("zero", "one") if columns.numbering else _ALLOWED.get(columns.answer_as or "", tuple(WAYS))
    if any(_is_mixed(each.options) for each in answers):
        ways = tuple(way for way in ways if way not in ("letter", "zero", "one"))
        if not ways:
            raise DatasetError(f"column {column}: options have letters out of order, so numbers do not count them")
    alike = [_what_counts(each) for each in answers]
    found: dict[str, tuple[Numbers | None, ...]] = {}
    # Options' texts are looked at last, and no further than a row that they do not fit where another way fits all.
    for way in sorted(ways, key=lambda way: way in _BY_TEXT):
        numbers = _read_all(way, answers, alike)
        if way in _BY_TEXT and any(None not in each for each in found.values()):
            numbers = takewhile(lambda each: each is not None, numbers)
        found[way] = tuple(numbers)
    fits = {way: sum(each is not None for each in numbers) for way, numbers in found.items()}
    if columns.numbering:
        _check_stated(columns.numbering, found, fits, column)
        ways, fits = (columns.numbering,), {columns.numbering: fits[columns.numbering]}
    most = max(fits.values())
    if not most:
        first = answers[0]
        options = " / ".join(first.options.texts)
        raise DatasetError(
            f"column {column}: no answer names an option, such as {first.value!r:.60} of {first.place}, whose options "
            f"are {options:.120}; name the column with columns: {{answer: ...}}"
        )
    best = [way for way in ways if fits[way] == most]
    if not columns.numbering:
        _check_numbering(answers, found, best[0], column)
    # What names options is no place among them, but it may be the text of another.
    rivals = best[1:] if best[0] != "named" else [way for way in best if way == "text"]
    if any(found[way] != found[best[0]] for way in rivals):
        readings = {way: found[way] for way in best}
        raise OpenAnswersError(column, *_ask(answers, readings), readings)
    return ReadAnswers(best[0], found[best[0]])


def _what_counts(answer: RawAnswer) -> tuple[object, ...]:
    """What of an answer says how it is read where the options' texts do not; its place, if that cannot be told."""
    value, options = answer.value, answer.options
    if not isinstance(value, (str, int)):
        return (answer.place,)
    return type(value), value, len(options.texts), options.labels


def _read_all(way: str, answers: Sequence[RawAnswer], alike: Sequence[tuple[object, ...]]) -> Iterable[Numbers | None]:
    """What each answer means in one way of reading; `alike` holds `_what_counts` of each."""
    read = _READERS[way]
    if way in _BY_TEXT:
        return (read(each.value, each.options) for each in answers)
    # Few answers differ without the options' texts, and each of them is read once.
    different = dict(zip(alike, answers, strict=True))
    known = {each: read(answer.value, answer.options) for each, answer in different.items()}
    return map(known.__getitem__, alike)


def _ask(answers: Sequence[RawAnswer], found: Mapping[str, Sequence[Numbers | None]]) -> tuple[str, str, str]:
    """The first row in which several readings differ, the field that decides, and its values."""
    place = next(place for place in range(len(answers)) if len({numbers[place] for numbers in found.values()}) > 1)
    example = answers[place]
    meant = ", ".join(
        f"{' or '.join(map(str, numbers[place] or ['none']))} as {WAYS[way]}" for way, numbers in found.items()
    )
    field, values = "answer_as", "one_hot or number" if "one_hot" in found else "letter, number or text"
    if {*found} == {"zero", "one"}:
        field, values = "numbering", "zero or one"
    return f"{example.value!r:.60} of {example.place} is option {meant}", field, values


def _check_stated(
    stated: str, found: Mapping[str, Sequence[Numbers | None]], fits: Mapping[str, int], column: str
) -> None:
    """Raises `DatasetError` if counting from the other number reads every row that the stated one does, and more."""
    other = "one" if stated == "zero" else "zero"
    pairs = zip(found[stated], found[other], strict=True)
    if fits[other] > fits[stated] and not any(mine is not None and its is None for mine, its in pairs):
        first = {"zero": 0, "one": 1}
        rows = len(found[other])
        fitting = f"all {rows:,} rows" if fits[other] == rows else f"{fits[other]:,} of {rows:,} rows"
        raise DatasetError(
            f"column {column}: counting from {first[other]} fits {fitting}, from {first[stated]} only "
            f"{fits[stated]:,}: set columns: {{numbering: {other}}}"
        )


def _check_numbering(
    answers: Sequence[RawAnswer], found: Mapping[str, Sequence[Numbers | None]], way: str, column: str
) -> None:
    """Raises `DatasetError` if some rows can only count from 0, and others only from 1."""
    other = {"zero": "one", "one": "zero"}.get(way)
    if other is None or other not in found:
        return
    pairs = list(zip(found[way], found[other], strict=True))
    against = next((place for place, (mine, its) in enumerate(pairs) if mine is None and its is not None), None)
    if against is None:
        return
    only = next(place for place, (mine, its) in enumerate(pairs) if mine is not None and its is None)
    one, two = (f"{answers[place].value!r} of {answers[place].place}" for place in (only, against))
    facts = f"{one} can only be one of {WAYS[way]}, and {two} only one of {WAYS[other]}"
    raise OpenAnswersError(column, facts, "numbering", "zero or one", {each: found[each] for each in (way, other)})


def _items(value: Any) -> list[Any]:
    """What an answer names, one by one: a list, or a text like `A,C`."""
    value = unpack(value)
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, str):
        return [each for each in _SEVERAL.split(value.strip()) if each]
    return [] if value is None else [value]


def _apart(value: Any) -> Any:
    """Letters that are written in one word, `ACD`, as a list; any other answer as it is."""
    return list(value.strip()) if isinstance(value, str) and is_word_of_letters(value) else value


def is_word_of_letters(value: str) -> bool:
    """Whether a text may be several letters in one word, such as `ACD`."""
    word = value.strip()
    return len(word) > 1 and word.isascii() and word.isalpha()


def _whole(item: Any) -> int | None:
    """A number, also as pandas writes it where a column has empty cells: 2.0."""
    if isinstance(item, str):
        item = _normal(item)
        number = _FLOAT.fullmatch(item)
        item = number[1] if number else item
    return parse_whole_number(item)


def _normal(text: str) -> str:
    """A letter or number without what only its writing adds: `①` is 1."""
    return text.strip() if text.isascii() else unicodedata.normalize("NFKC", text).strip()


def _several(value: Any, number_of: Callable[[Any], int | None]) -> Numbers | None:
    numbers = [number_of(each) for each in _items(value)]
    known = {number for number in numbers if number is not None}
    # An option that is named twice shows that this is not what the answer means.
    return tuple(sorted(known)) if known and len(known) == len(numbers) else None


def _named(value: Any, options: ReadOptions) -> Numbers | None:
    if options.labels is None:
        return None
    labels = {label.casefold(): place for place, label in enumerate(options.labels, start=1)}

    def number_of(item: Any) -> int | None:
        whole = _whole(item)
        label = _normal(str(item)) if whole is None else str(whole)
        return labels.get(label.casefold(), labels.get(label.translate(_BARE).casefold()))

    return _several(value, number_of)


def _is_mixed(options: ReadOptions) -> bool:
    """Whether the options have letters or numbers out of order: then it is not told what counting them means."""
    labels = options.labels or ()
    return all(len(label) < 3 for label in labels) and [*labels] != sorted(labels, key=lambda each: (len(each), each))


def _lettered(value: Any, options: ReadOptions) -> Numbers | None:
    def number_of(item: Any) -> int | None:
        letter = _CALLED.sub("", _normal(str(item))).translate(_BARE).upper()
        number = ord(letter) - ord("A") + 1 if len(letter) == 1 else 0
        return number if 1 <= number <= len(options.texts) else None

    return _several(value, number_of)


def _counted(first: int) -> Callable[[Any, ReadOptions], Numbers | None]:
    def read(value: Any, options: ReadOptions) -> Numbers | None:
        def number_of(item: Any) -> int | None:
            number = _whole(item)
            return number - first + 1 if number is not None and first <= number < first + len(options.texts) else None

        return _several(value, number_of)

    return read


def _with_text(value: Any, options: ReadOptions) -> Numbers | None:
    """The option whose letter or number, and whose text, both are written; one alone is no answer."""

    def number_of(item: Any) -> int | None:
        parts = _BOTH.fullmatch(str(item).strip())
        place = None if parts is None else _place(parts["behind_it"] or parts["text"], options.texts)
        if parts is None or place is None:
            return None
        labels = options.labels or ()
        called = {labels[place - 1].casefold()} if len(labels) >= place else set()
        return (
            place
            if (parts["before"] or parts["after"]).casefold() in called | {chr(ord("a") + place - 1), str(place)}
            else None
        )

    found = number_of(value)
    return (found,) if found is not None else _several(value, number_of) if isinstance(value, (list, tuple)) else None


def _written(value: Any, options: ReadOptions) -> Numbers | None:
    whole = _place(value, options.texts)
    if whole is not None:
        return (whole,)
    listed = unpack(value)
    return _several(listed, lambda item: _place(item, options.texts)) if isinstance(listed, (list, tuple)) else None


def _place(value: Any, texts: Sequence[str]) -> int | None:
    """The number of the only text that equals `value`, by its words.

    In lower case if none does, and without a full stop if none does so.
    """
    said = " ".join(str(value).split())
    folded = said.casefold()
    alike = [place for place, text in enumerate(texts, start=1) if " ".join(text.split()).casefold() == folded]
    same = [place for place in alike if " ".join(texts[place - 1].split()) == said]
    for found in (same, alike):
        if len(found) == 1:
            return found[0]
    bare = folded.rstrip(".")
    ended = [] if alike else [place for place, text in enumerate(texts, 1) if text.casefold().rstrip(". ") == bare]
    return ended[0] if bare and len(ended) == 1 else None


def _marked(value: Any, options: ReadOptions) -> Numbers | None:
    marks = unpack(value)
    if not isinstance(marks, (list, tuple)) or len(marks) < len(options.texts):
        return None
    read = [_MARKS.get(str(mark).strip().casefold()) for mark in marks]
    right = tuple(place for place, mark in enumerate(read, start=1) if mark)
    return right if None not in read and right and right[-1] <= len(options.texts) else None


_MARKS = {
    **dict.fromkeys(("1", "1.0", "true", "100", "100.0", "yes", "x"), True),
    **dict.fromkeys(("0", "0.0", "false", "", "none", "no", "nan"), False),
}
_READERS: Mapping[str, Callable[[Any, ReadOptions], Numbers | None]] = MappingProxyType(
    {
        "named": _named,
        "letter": _lettered,
        "zero": _counted(0),
        "one": _counted(1),
        "both": _with_text,
        "text": _written,
        "one_hot": _marked,
    }
)
