"""What an exam asks: frozen, hashable, without I/O and without the right answer.

Gold answers live in `medexam.items`, so that no program can see them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Literal, Self

from pydantic import ConfigDict, model_validator
from pydantic.dataclasses import dataclass

from medexam.errors import DatasetError
from medexam.frozen_model import SlottedModel

Language = Literal["en", "es", "fr", "gl", "it", "ja", "ru", "zh"]
"""ISO 639-1 codes of the languages that questions may be in."""


class Discipline(StrEnum):
    """The six specialisation exams of the Spanish Ministry of Health."""

    BIOLOGY = "biology"
    CHEMISTRY = "chemistry"
    MEDICINE = "medicine"
    NURSING = "nursing"
    PHARMACOLOGY = "pharmacology"
    PSYCHOLOGY = "psychology"


_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, config=_STRICT)
class Option(SlottedModel):
    """One choice of a question."""

    number: int
    """The number printed in the exam, from 1."""
    text: str


@dataclass(frozen=True, slots=True, config=_STRICT)
class Exam(SlottedModel):
    """One official exam, a discipline in a year, or a collection of questions from several."""

    name: str
    """The booklet's name, such as `Cuaderno_2013_1_B`."""
    year: int | None
    """None where the source does not tell."""
    discipline: str
    """A `Discipline`, or what questions of one's own are grouped by."""
    split: Literal["train", "dev", "test"] | None = None
    """Where its authors put it; None where the year decides."""
    independent: bool = False
    """Whether it is no exam but a group: intervals resample its questions one by one."""


@dataclass(frozen=True, slots=True, config=_STRICT)
class Question(SlottedModel):
    """One multiple-choice question as it was printed."""

    key: str
    """Stable and unique, the same in every language: `SET/2013/biology/17`."""
    exam: Exam
    number: int
    """The number printed in the booklet; annulled questions leave gaps."""
    language: Language
    stem: str
    options: tuple[Option, ...]
    image: str | None = None
    """Relative path of the picture that the question refers to; None when it has none."""
    context: str | None = None
    """A text that is shown before the stem; None when there is none."""
    picture: str | None = None
    """What `image` names as a model is shown it: a data URL, `data:image/png;base64,...`; None where none is shown."""

    @model_validator(mode="after")
    def _options_are_a_choice(self) -> Self:
        if len(self.options) < 2:
            raise ValueError(f"{self.key}: a question needs at least two options, this one has {len(self.options)}")
        if len({option.number for option in self.options}) != len(self.options):
            raise ValueError(f"{self.key}: two options carry the same number: {list(self.option_numbers)}")
        return self

    @classmethod
    def of(
        cls,
        stem: str,
        options: Sequence[str] | Mapping[int, str],
        *,
        language: Language = "en",
        key: str | None = None,
        discipline: str = Discipline.MEDICINE,
    ) -> Self:
        """Make a question of one's own: options in order, numbered from 1, or by their numbers.

        `key` None: one made of its words, so that equal questions have equal keys.
        """
        numbered = options if isinstance(options, Mapping) else dict(enumerate(options, start=1))
        texts = tuple(Option(number=number, text=text) for number, text in numbered.items())
        words = "\n".join([language, stem, *(f"{option.number}. {option.text}" for option in texts)])
        return cls(
            key=key or f"own/{hashlib.sha256(words.encode()).hexdigest()[:12]}",
            exam=Exam(name="own", year=None, discipline=discipline),
            number=1,
            language=language,
            stem=stem,
            options=texts,
        )

    @property
    def option_numbers(self) -> tuple[int, ...]:
        """The printed numbers of the options, in the order of the booklet."""
        return tuple(map(_number, self.options))

    @property
    def printed(self) -> str:
        """The context if there is one, the stem, then each option on a line behind its number."""
        return "\n".join([self.asked, *(f"{option.number}. {option.text}" for option in self.options)])

    @property
    def asked(self) -> str:
        """The stem, a blank line below the context if there is one."""
        return self.stem if self.context is None else f"{self.context}\n\n{self.stem}"


_number = attrgetter("number")


def check_question(value: object) -> None:
    """Raise `DatasetError` for a text instead of a question."""
    if isinstance(value, str):
        raise DatasetError(
            f"a program answers a question with options, and {value[:60]!r} is only a text: write "
            'medexam.Question.of("Which vitamin ...?", ["A", "C", "D"]), or take one of medexam.load_questions()'
        )
