"""What is asked: frozen, hashable, without I/O, and without the right answer.

A `Question` has numbered options; a `Task` is answered in words. What is expected of them stands apart, in the golds of
an `ItemSet`, so that no program can see it.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import ConfigDict, model_validator
from pydantic.dataclasses import dataclass

from medexam.errors import DatasetError
from medexam.frozen_model import FrozenModel, SlottedModel

Language = Literal["ca", "de", "en", "es", "eu", "fr", "gl", "it", "ja", "pt", "ru", "zh"]
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


@plain_dataclass(frozen=True, slots=True)
class Scoring:
    """How answers with numbered options are scored where a data set declares it."""

    penalty: float = 1 / 3
    """What a wrong answer takes off, where a right one gives 1; that of the Spanish boards."""
    as_headqa_v1: bool = False
    """Whether the averages over exams that the HEAD-QA v1 paper prints are measures too."""

    @property
    def cancelling(self) -> float:
        """How many wrong answers cancel a right one."""
        return 1 / self.penalty


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
            exam=Exam(name="own", year=None, discipline=discipline, independent=True),
            number=1,
            language=language,
            stem=stem,
            options=texts,
        )

    @property
    def option_numbers(self) -> tuple[int, ...]:
        """The printed numbers of the options, in the order of the booklet."""
        return tuple(map(attrgetter("number"), self.options))

    @property
    def printed(self) -> str:
        """The context if there is one, the stem, then each option on a line behind its number."""
        return "\n".join([self.asked, *map("{0.number}. {0.text}".format, self.options)])

    @property
    def asked(self) -> str:
        """The stem, a blank line below the context if there is one."""
        return self.stem if self.context is None else f"{self.context}\n\n{self.stem}"


def check_question(value: object) -> None:
    """Raise `DatasetError` for a text instead of a question."""
    if isinstance(value, str):
        raise DatasetError(
            f"a program answers a question with options, and {value[:60]!r} is only a text: write "
            'medexam.Question.of("Which vitamin ...?", ["A", "C", "D"]), or take one of medexam.load_questions()'
        )


@plain_dataclass(frozen=True, slots=True)
class Task:
    """One question as it is shown. Only the fields that its benchmark uses are filled."""

    key: str
    """Stable and unique: `SET/short/3`."""
    group: str
    """What its scores are broken down by: the format, or the variant."""
    language: Language
    question: str
    context: str = ""
    """The text that holds the answer."""
    options: tuple[str, ...] = ()
    """What may be chosen, in the order shown; without numbers."""
    given_answer: str = ""
    """An answer that is shown with the question, such as a wrong one to be explained."""
    given_reasoning: tuple[str, ...] = ()
    """The steps to that answer, a line each."""


@plain_dataclass(frozen=True, slots=True)
class Component:
    """A labelled part of a task's context."""

    label: str
    """Such as `premise`."""
    start: int
    """First character in the context, from 0."""
    end: int
    """The character after the last."""


@plain_dataclass(frozen=True, slots=True)
class TaskGold:
    """What is expected of one task. Only the fields that its benchmark uses are filled."""

    answers: tuple[str, ...] = ()
    """The right answer's texts: a list's entries, or several wordings of a span. Empty where the data hold none."""
    incorrect_explanation: str = ""
    """Why the answer that is shown is wrong."""
    incorrect_step: tuple[str, ...] = ()
    """The lines that name the wrong step and say what is wrong with it."""
    paragraph: str | None = None
    """The paragraph that the task was made from; None where the data name none."""
    components: tuple[Component, ...] = ()
    """Argument components of the context; empty where the data hold none."""
    repeats_training: bool = False
    """Whether the question stands in the training split too."""


Alignment = Literal["literal", "aligned"]
"""How an extracted answer was found in its context: as it was written, or after mending its edges."""


class Gold(FrozenModel):
    """The official answer of one question."""

    number: int
    """The printed number of the right option."""
    others: tuple[int, ...] = ()
    """Numbers of further options that are right as well; choosing any one of them is right."""

    def accepts(self, answer: int | None) -> bool:
        """Return whether `answer` is the number of a right option."""
        return answer == self.number or answer in self.others


class AnswerKey(dict[str, Gold]):
    """Maps a question's key to its `Gold`; to look up one that it does not hold raises `DatasetError`."""

    def __missing__(self, key: str) -> Gold:
        raise DatasetError(f"the answer key holds no answer for question {key}")


Item = Question | Task
ItemT = TypeVar("ItemT", bound=Item)
I_co = TypeVar("I_co", bound=Item, covariant=True)
G_co = TypeVar("G_co", bound=Mapping[str, Any], covariant=True)


@plain_dataclass(frozen=True)
class ItemSet(Generic[I_co, G_co]):
    """The items that a spec selects from a data set in one language, and what they were read from."""

    name: str
    language: Language
    version: str
    """The data set's own version, such as `1.0`."""
    source: str
    """The path that was read, with the hub id and revision where the file states them."""
    fingerprint: str
    """SHA-256 of the items that the source holds, whatever was selected, in hexadecimal."""
    golds_fingerprint: str
    """SHA-256 of what the source expects, whatever was selected, in hexadecimal."""
    corrected: tuple[str, ...] = field(default=(), kw_only=True)
    """Keys of the source's items of which characters were corrected; usually empty."""
    questions: Sequence[I_co]
    """In the order of the source."""
    golds: G_co
    """Key -> what is expected, for each of `questions` and no other."""
    licence: str = ""
    citation: str = ""
    """How its authors ask to be cited."""
    left_out: tuple[str, ...] = ()
    """Keys of the source's questions without an official answer, which cannot be asked."""
    references: tuple[str, ...] = ()
    """The right answers of the whole source, over which a scorer weighs words; empty if none is weighed so."""
    notes: tuple[str, ...] = ()
    """What a reader of the results should know of the data, such as what they do not hold."""
    files_digest: str = ""
    """SHA-256 of the files' bytes before they were read; empty if the set was not read from files."""

    @property
    def in_words(self) -> bool:
        """Whether its questions are answered in words."""
        return isinstance(next(iter(self.questions), None), Task)

    def only(self, keys: Iterable[str]) -> Self:
        """Return the same of the questions of these keys, in their order."""
        questions = {item.key: item for item in self.questions}
        picked = tuple(questions[key] for key in keys)
        golds: Any = type(self.golds)
        return replace(self, questions=picked, golds=golds({item.key: self.golds[item.key] for item in picked}))


ExamSet = ItemSet[Question, AnswerKey]
"""Questions with numbered options."""
TaskSet = ItemSet[Task, Mapping[str, TaskGold]]
"""Questions that are answered in words."""
AnySet = ItemSet[Any, Any]
