"""What an exam asks: frozen, hashable, without I/O and without the right answer.

Gold answers live in `medexam.answer_key`, so that no program can see them.
"""

from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

Language = Literal["en", "es", "gl", "it", "ru"]
"""ISO 639-1 codes of the languages that HEAD-QA is published in."""


class Discipline(StrEnum):
    """The six specialisation exams of the Spanish Ministry of Health."""

    BIOLOGY = "biology"
    CHEMISTRY = "chemistry"
    MEDICINE = "medicine"
    NURSING = "nursing"
    PHARMACOLOGY = "pharmacology"
    PSYCHOLOGY = "psychology"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Option(_Frozen):
    """One choice of a question."""

    number: int
    """The number printed in the exam, from 1."""
    text: str


class Exam(_Frozen):
    """One official exam: a discipline in a year."""

    name: str
    """The booklet's name, such as `Cuaderno_2013_1_B`."""
    year: int
    discipline: Discipline


class Question(_Frozen):
    """One multiple-choice question as it was printed."""

    key: str
    """Stable and unique, the same in every language: `headqa-v1/2013/biology/17`."""
    exam: Exam
    number: int
    """The number printed in the booklet; annulled questions leave gaps."""
    language: Language
    stem: str
    options: tuple[Option, ...]
    image: str | None = None
    """Relative path of the picture that the question refers to; None when it has none."""

    @model_validator(mode="after")
    def _options_are_a_choice(self) -> Self:
        if len(self.options) < 2:
            raise ValueError(f"{self.key}: a question needs at least two options, this one has {len(self.options)}")
        if len(set(self.option_numbers)) != len(self.options):
            raise ValueError(f"{self.key}: two options carry the same number: {list(self.option_numbers)}")
        return self

    @property
    def option_numbers(self) -> tuple[int, ...]:
        """The printed numbers of the options, in the order of the booklet."""
        return tuple(option.number for option in self.options)
