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

_NAME = re.compile(r"^Cuaderno_(\d{4})_(\d+)_([BEFMPQ])\Z")
_COVER_EXAM = re.compile(
    r"\b(biolog[ií]a|enfermer[ií]a|farmacia|medicina|psicolog[ií]a|qu[ií]mica)\s*[-\u2013\u2014]\s*VERSI[ÓO]N\s*:?\s*(\d+)",
    re.IGNORECASE,
)
_COVER_YEAR = re.compile(r"PRUEBAS\s+SELECTIVAS\s+(?:DE\s+)?(\d{4})", re.IGNORECASE)
_COVER_COUNT = re.compile(r"(\d{2,3})\s+preguntas(?:\s+más\s+(\d{1,2})\s+de\s+reserva)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExamName:
    """What an exam's name says."""

    name: str
    year: int
    discipline: Discipline
    version: str
    """The booklet's version, whose order of questions the key must have."""

    @property
    def prefix(self) -> str:
        """What the keys of its questions begin with."""
        return f"{BUILT.keys}/{self.year}/{self.discipline}"


def parse_name(name: str) -> ExamName:
    """Parse the exam's `name`; raise `DatasetError` when it is of another form."""
    match = _NAME.match(name)
    if match is None:
        letters = ", ".join(f"{letter} {subject}" for letter, subject in LETTERS.items())
        raise DatasetError(f"--name {name!r} is not of the form Cuaderno_YEAR_VERSION_LETTER ({letters})")
    return ExamName(name, int(match.group(1)), LETTERS[match.group(3)], match.group(2))


def check_cover(exam: ExamName, text: str) -> int | None:
    """Return how many questions the cover announces, those in reserve included; None if it does not say.

    Raises `DatasetError` if `text`, what stands before the first question, is of another exam than the name.
    """
    year, subject, count = _COVER_YEAR.search(text), _COVER_EXAM.search(text), _COVER_COUNT.search(text)
    stated: dict[str, object] = {"year": int(year.group(1))} if year else {}
    if subject:
        stated |= {"discipline": LETTERS[subject.group(1)[0].upper()], "version": subject.group(2)}
    for field, from_cover in stated.items():
        if (from_name := getattr(exam, field)) != from_cover:
            raise DatasetError(
                f"--name {exam.name} says {field} {from_name}, the booklet's cover {from_cover}: correct the name, or "
                f"give the booklet that it names"
            )
    return int(count.group(1)) + int(count.group(2) or 0) if count else None
