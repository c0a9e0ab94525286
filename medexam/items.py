"""What is asked, as one value for every benchmark: items as they are shown, and apart from them what is expected."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, Protocol, Self, TypeVar

from medexam.errors import DatasetError
from medexam.frozen_model import FrozenModel
from medexam.questions import Language, Question
from medexam.tasks import Task, TaskGold


class Gold(FrozenModel):
    """The official answer of one question."""

    number: int
    """The printed number of the right option."""
    others: tuple[int, ...] = ()
    """Numbers of further options that are right as well; choosing any one of them is right."""

    def accepts(self, answer: int | None) -> bool:
        """Return whether `answer` is the number of a right option."""
        return answer == self.number or answer in self.others


class AnswerKey(Mapping[str, Gold]):
    """Maps a question's key to its `Gold`; immutable.

    Looking up a key that it does not hold raises `DatasetError`.
    """

    def __init__(self, golds: Mapping[str, Gold]) -> None:
        self._golds = MappingProxyType(dict(golds))

    def __getitem__(self, key: str) -> Gold:
        try:
            return self._golds[key]
        except KeyError:
            raise DatasetError(f"the answer key holds no answer for question {key}") from None

    def __contains__(self, key: object) -> bool:
        return key in self._golds

    def __iter__(self) -> Iterator[str]:
        return iter(self._golds)

    def __len__(self) -> int:
        return len(self._golds)


class Item(Protocol):
    """One question of any benchmark."""

    @property
    def key(self) -> str:
        """Stable and unique."""

    @property
    def language(self) -> Language:
        """The language it is shown in."""


I_co = TypeVar("I_co", bound=Item, covariant=True)
G_co = TypeVar("G_co", bound=Mapping[str, Any], covariant=True)


@dataclass(frozen=True)
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
    published_fingerprint: str | None = field(default=None, kw_only=True)
    """`fingerprint` of the items as the source has them, if characters of them were corrected; None: they are so."""
    corrected: tuple[str, ...] = field(default=(), kw_only=True)
    """Keys of the source's items of which characters were corrected; usually empty."""
    questions: tuple[I_co, ...]
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
