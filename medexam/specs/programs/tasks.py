"""The words of programs that answer in words, each for the questions of a benchmark."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

from pydantic import model_validator

from medexam.specs.dataset import Format
from medexam.specs.programs.base import PositiveInt, WordsSpec
from medexam.specs.programs.needs import AnswerFormat, Asking, EngineNeeds, WordFiles

CLOSED_TOKENS = 1024
"""Default budget of true/false, multiple choice and lists."""
OPEN_TOKENS = 2048
"""Default budget of answers in prose."""
QUOTE_TOKENS = 512
"""Default budget of a quotation: the longest answers of the published data."""
SHORT_TOKENS = 64
"""Default budget of a short answer."""
_CLOSED = frozenset({"true_false", "multiple_choice", "list"})


class _Way(NamedTuple):
    """How a kind of words asks."""

    prompt: str
    """The named set of words that ships."""
    budgets: Mapping[str, int]
    """Group of words that it asks with -> tokens a reply may have by default."""
    guided_budgets: Mapping[str, int] | None
    """The same where answers are guided; None: they cannot be."""


_FORMATS = {kind: CLOSED_TOKENS if kind in _CLOSED else OPEN_TOKENS for kind in get_args(Format)}
_QUOTED, _SENTENCES = {"quote": QUOTE_TOKENS}, {"sentences": QUOTE_TOKENS}
_KINDS: Mapping[str, _Way] = MappingProxyType(
    {
        "by_format": _Way("formats", _FORMATS, _FORMATS),
        "short_answer": _Way("short_answer", dict.fromkeys(("answer", "answer_from_text"), SHORT_TOKENS), None),
        "extract_explanation": _Way("extraction", _QUOTED, _SENTENCES),
        "quote": _Way("spans", _QUOTED, _SENTENCES),
    }
)


class TaskSpec(WordsSpec):
    """Ask for an answer in words: in those of each format, in a few, or by a quotation of the text."""

    asks_model: ClassVar[bool] = True
    kind: Literal["by_format", "short_answer", "extract_explanation", "quote"]
    prompt: str | Path | None = None
    """A named set of words or a path to a YAML file with one's own; None: those that ship for it."""
    answer_format: AnswerFormat = "free"
    """`free` asks and reads what comes; `guided` leaves the model nothing but well-formed answers."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: the model's `max_tokens`, else the program's own."""

    @model_validator(mode="after")
    def _can_be_guided(self) -> Self:
        if self.answer_format == "guided" and _KINDS[self.asked_as].guided_budgets is None:
            raise ValueError("answer_format guided cannot constrain short answers: leave it out")
        return self

    @property
    def asking(self) -> Asking:
        """What it asks: dialogues, and choices where the answer is guided."""
        kind = _KINDS[self.asked_as]
        prompt = self.prompt or kind.prompt
        return Asking(
            engine_needs=EngineNeeds(chat=True, guided=self.answer_format == "guided"),
            words=WordFiles("groups", prompt, tuple(self._budgets), language=self.prompt_language),
            asked_groups=tuple(kind.budgets) if self.asked_as == "by_format" else None,
            could_be_guided=self.answer_format == "free" and kind.guided_budgets is not None,
            answers_tasks=True,
        )

    @property
    def _budgets(self) -> Mapping[str, int]:
        return (self.answer_format == "guided" and _KINDS[self.asked_as].guided_budgets) or _KINDS[
            self.asked_as
        ].budgets

    def budget(self, of_model: int | None) -> Any:
        """Map each group of words to the tokens a reply may have, where the model's own spec says `of_model`."""
        return {group: self.max_tokens or of_model or own for group, own in self._budgets.items()}

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        return [*self.marks(answer_format="{}"), *self.words_label]
