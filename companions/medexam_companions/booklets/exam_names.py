"""What an exam's name says: `Cuaderno_2020_0_B` is the booklet of 2020, version 0, biology.

Also what a cover says, in the Ministry's words, so that the two can be held against each other.
"""

import re
from dataclasses import dataclass

from medexam.errors import DatasetError
from medexam.questions import Discipline
from medexam.specs import BUILT

LETTERS = {
    "B": Discipline.BIOLOGY,
    "E": Discipline.NURSING,
    "F": Discipline.PHARMACOLOGY,
    "M": Discipline.MEDICINE,
    "P": Discipline.PSYCHOLOGY,
    "Q": Discipline.CHEMISTRY,
}
"""The last part of an exam's name, and the first letter of what its cover calls the discipline."""

_NAME = re.compile(r"^Cuaderno_(\d{4})_(\d+)_([A-Z])$")
_COVER_EXAM = re.compile(
    r"\b(biolog[ií]a|enfermer[ií]a|farmacia|medicina|psicolog[ií]a|qu[ií]mica)\s*[-\u2013\u2014]\s*VERSI[ÓO]N\s*:?\s*(\d+)",
    re.IGNORECASE,
)
_COVER_YEAR = re.compile(r"PRUEBAS\s+SELECTIVAS\s+(?:DE\s+)?(\d{4})", re.IGNORECASE)
_COVER_COUNT = re.compile(r"(\d{2,3})\s+preguntas(?:\s+más\s+(\d{1,2})\s+de\s+reserva)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExamName:
    """What is known of an exam before it is read."""

    name: str
    year: int
    discipline: Discipline
    version: str | None
    """The booklet's version, whose order of questions the key must have; None if the name does not tell it."""

    @property
    def prefix(self) -> str:
        """What the keys of its questions begin with."""
        return f"{BUILT.keys}/{self.year}/{self.discipline}"


@dataclass(frozen=True, slots=True)
class Cover:
    """What a cover says; None for what it does not."""

    year: int | None
    discipline: Discipline | None
    version: str | None
    questions: int | None
    """Announced, those in reserve included."""


def parse_name(name: str, year: int | None, discipline: Discipline | None) -> ExamName:
    """Parse the exam's `name`. `year` and `discipline` are for names of another form and win over the name.

    Raises `DatasetError` if neither tells them.
    """
    match = _NAME.match(name)
    if not re.fullmatch(r"[\w.-]+", name) or name.startswith("."):
        raise DatasetError(f"--name {name!r} cannot be a file's name: use letters, digits, -, _ and .")
    year = year or (int(match.group(1)) if match else None)
    discipline = discipline or (LETTERS.get(match.group(3)) if match else None)
    if year is None or discipline is None:
        letters = ", ".join(f"{letter} {subject}" for letter, subject in LETTERS.items())
        raise DatasetError(
            f"--name {name!r} does not contain the year and the discipline: call it Cuaderno_YEAR_VERSION_LETTER "
            f"({letters}), or give --year and --discipline"
        )
    return ExamName(name, year, discipline, match.group(2) if match else None)


def parse_cover(text: str) -> Cover:
    """Parse what the text before the first question says."""
    exam, year, count = _COVER_EXAM.search(text), _COVER_YEAR.search(text), _COVER_COUNT.search(text)
    return Cover(
        year=int(year.group(1)) if year else None,
        discipline=LETTERS[exam.group(1)[0].upper()] if exam else None,
        version=exam.group(2) if exam else None,
        questions=int(count.group(1)) + int(count.group(2) or 0) if count else None,
    )


def check_cover(exam: ExamName, cover: Cover, stated: frozenset[str]) -> None:
    """Raise `DatasetError` if the cover says another exam than the name; `stated` fields are the user's own word."""
    for field in ("year", "discipline", "version"):
        from_name, from_cover = getattr(exam, field), getattr(cover, field)
        if field not in stated and None not in (from_name, from_cover) and from_name != from_cover:
            advice = f", or give --{field} {from_name} to overrule the cover" if field != "version" else ""
            raise DatasetError(
                f"--name {exam.name} says {field} {from_name}, the booklet's cover {from_cover}: correct the name, or "
                f"give the booklet that it names{advice}"
            )
