"""What every source is read into before anything is judged: rows that can be asked, and faults where they cannot.

A reader turns its own format into a `Reading`, or into a `TaskReading` if questions are answered in words. Loading
refuses a reading with faults; checking reports them. It knows no file format.

Private-use characters are read as the signs that they stand for: Word writes signs of the fonts Symbol and Wingdings as
U+F000 plus their code in that font. Only codes that have one sign in these exams are read; others stay as they are.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from medexam.questions import Discipline, Exam, Question, Task, TaskGold

_LARGEST = 2**31 - 1
"""Of a printed number, a year or a place in a text; the tables of runs hold none beyond it."""
_DIGITS = re.compile(r"\s*[0-9]{1,20}\s*")


@dataclass(frozen=True, slots=True)
class Row:
    """One readable question with the answer that its source states, legal or not."""

    question: Question
    gold: int | None
    """The printed number stated as right, which may be no option; None if there is no official answer."""
    others: tuple[int, ...] = ()
    """Numbers of further options that are right as well."""


class Altered(NamedTuple):
    """What a package makes of rows that it alters."""

    rows: tuple[Row, ...]
    """Those that could be altered; the number of the right option stays, so that runs can be paired."""
    unfit: tuple[str, ...] = ()
    """The keys of the others, which are not asked."""
    reason: str = ""
    """Why the others could not."""


@dataclass(frozen=True, slots=True)
class RowFault:
    """Something in a source that cannot be read as a question."""

    place: str
    """The question's key where it is known, else the exam or line."""
    detail: str


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that one file, or one set of parts, holds."""

    source: str
    """The path that was read, and the hub revision where the file states one."""
    version: str
    rows: tuple[Row, ...]
    faults: tuple[RowFault, ...] = ()
    published: Mapping[str, Question] = field(default_factory=dict)
    """Key -> question as the file has it, for those of which characters were corrected."""
    notes: tuple[str, ...] = ()
    """What a reader of the results should know of the data."""


class RowError(ValueError):
    """A record is no question; the reader makes a `RowFault` of it."""


def parse_whole_number(value: object) -> int | None:
    """Parse the whole number in `value`, which may be text or a float such as 3.0; None without one, or for one too
    large.
    """
    number = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif (isinstance(value, float) and value.is_integer()) or (isinstance(value, str) and _DIGITS.fullmatch(value)):
        number = int(value)
    return number if number is not None and abs(number) <= _LARGEST else None


def parse_exam(name: object, category: object, year: object) -> Exam:
    """Parse one exam; raise `RowError` naming the field that is wrong."""
    word = category.strip().lower() if isinstance(category, str) else ""
    word = Discipline.NURSING if word == "nursery" else word
    number = parse_whole_number(year)
    if not isinstance(name, str) or not name:
        raise RowError(f"name is {name!r}, not the name of an exam")
    if word not in set(Discipline):
        raise RowError(f"category is {category!r}, not one of {', '.join(Discipline)}")
    if number is None:
        raise RowError(f"year is {year!r}, not a year")
    return Exam(name=name, year=number, discipline=Discipline(word))


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task with what is expected of it."""

    task: Task
    gold: TaskGold
    split: str | None
    """Where its authors put it; None if the source does not tell."""
    question: Question | None = None
    """The exam's question that it asks without options; None of every other task."""


@dataclass(frozen=True, slots=True)
class TaskReading:
    """Everything that a source holds."""

    source: str
    """The path that was read."""
    version: str
    rows: tuple[TaskRow, ...]
    references: tuple[str, ...] = ()
    """The right answers of the whole source, over which a scorer weighs words; empty if none is weighed so."""
    notes: tuple[str, ...] = ()
    """What a reader of the results should know of the data."""


_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
_LATIN = "ABCDEFGHIKLMNOPQRSTUWXYZabcdefghiklmnopqrstuwxyz"
_GREEK = "ΑΒΧΔΕΦΓΗΙΚΛΜΝΟΠΘΡΣΤΥΩΞΨΖαβχδεφγηικλμνοπθρστυωξψζ"
_CODES = "\x2d\xa3\xa5\xab\xac\xad\xae\xaf\xb0\xb1\xb3\xb4\xb7\xb9\xba\xbb\xdb\xde\xe0"
_OTHERS = "−≤∞↔←↑→↓°±≥×•≠≡≈⇔⇒→"  # noqa: RUF001
"""Of Symbol but for the last, the arrow of Wingdings that Word makes of `-->`."""
SIGNS = {chr(0xF000 + ord(code)): sign for code, sign in zip(_LATIN + _CODES, _GREEK + _OTHERS, strict=True)}
"""Private-use character -> what it stands for. The letters are Symbol's, whose Greek ones lie on Latin keys."""
_TABLE = str.maketrans(SIGNS)


def find_private(question: Question) -> Iterator[str]:
    """Describe each private-use character of a question, with the sign that it stands for if it is known."""
    texts = [("the stem", question.stem), *((f"option {option.number}", option.text) for option in question.options)]
    for place, text in texts:
        for character in _PRIVATE.findall(text):
            sign = f"for {SIGNS[character]!r}" if character in SIGNS else "of no known sign"
            yield f"U+{ord(character):04X} in {place}, {sign}"


def read_signs(reading: Reading) -> Reading:
    """Write every known private-use character of `reading` as its sign, with the questions as published beside it."""
    rows, published = [], {}
    for row in reading.rows:
        question = _read(row.question)
        if question is not row.question:
            published[question.key] = row.question
            row = replace(row, question=question)
        rows.append(row)
    return replace(reading, rows=tuple(rows), published=published) if published else reading


def _read(question: Question) -> Question:
    if not any(_PRIVATE.search(text) for text in (question.stem, *(option.text for option in question.options))):
        return question
    options = tuple(option.model_copy(update={"text": option.text.translate(_TABLE)}) for option in question.options)
    read = question.model_copy(update={"stem": question.stem.translate(_TABLE), "options": options})
    return question if read == question else read
