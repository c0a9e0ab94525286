"""Programs that answer in words, each for the questions of a benchmark."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, get_args

from medexam.specs.catalogue import Form
from medexam.specs.dataset import Format
from medexam.specs.programs.base import PositiveInt, WordsSpec
from medexam.specs.programs.needs import AnswerFormat, EngineNeeds, WordFiles
from medexam.specs.programs.retrieving import LookUpSpec

CLOSED_TOKENS = 1024
"""Default budget of true/false, multiple choice and lists."""
OPEN_TOKENS = 2048
"""Default budget of answers in prose."""
QUOTE_TOKENS = 512
"""Default budget of a quotation: the longest answers of the published data."""
SHORT_TOKENS = 64
"""Default budget of a short answer."""
_CLOSED = frozenset({"true_false", "multiple_choice", "list"})


class TaskSpec(WordsSpec):
    """Base of the programs that answer in words."""

    asks_model: ClassVar[bool] = True
    asks_in_words: ClassVar[bool] = True
    answer_format: AnswerFormat = "free"
    """`free` asks and reads what comes; `guided` leaves the model nothing but well-formed answers."""
    max_tokens: PositiveInt | None = None
    """Tokens a reply may have; None: the model's `max_tokens`, else the program's own."""

    @property
    def could_be_guided(self) -> bool:
        """Whether it asks freely what could be chosen."""
        return self.answer_format == "free"

    @property
    def engine_needs(self) -> EngineNeeds:
        """What its requests hold: dialogues, and choices where the answer is guided."""
        return EngineNeeds(chat=True, guided=self.answer_format == "guided")

    @property
    def words(self) -> WordFiles:
        """The file of its words."""
        return WordFiles("groups", self.prompt, tuple(self.own_budgets), language=self.prompt_language)

    @property
    def own_budgets(self) -> Mapping[str, int]:
        """Group of words that the program asks with -> tokens a reply may have by default."""
        raise NotImplementedError

    def budget(self, of_model: int | None) -> dict[str, int]:
        """Map each group of words to the tokens a reply may have, where the model's own spec says `of_model`."""
        return {group: self.max_tokens or of_model or own for group, own in self.own_budgets.items()}

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        return [*self.marks(answer_format="{}"), *self.words_label]


class TaskLookUpSpec(TaskSpec, LookUpSpec):
    """Base of the programs that answer in words after passages, if a retriever is named."""

    k: PositiveInt = 2
    """Passages a question."""

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        return [*super().label_words, *([] if self.retriever is None else [self.retrieval_label])]


class ByFormatSpec(TaskLookUpSpec):
    """Ask each question in the words of its format."""

    task_forms: ClassVar[tuple[Form, ...]] = ("formats",)
    own_budgets: ClassVar[Mapping[str, int]] = {
        kind: CLOSED_TOKENS if kind in _CLOSED else OPEN_TOKENS for kind in get_args(Format)
    }
    kind: Literal["by_format"] = "by_format"
    prompt: str | Path = "formats"
    """A named set of words (`formats`) or a path to a YAML file with one's own."""

    @property
    def asked_groups(self) -> tuple[str, ...]:
        """The formats that it has words for."""
        return tuple(self.own_budgets)


class ShortAnswerSpec(TaskLookUpSpec):
    """Have the model answer in a few words."""

    task_forms: ClassVar[tuple[Form, ...]] = ("short_answer",)
    could_be_guided: ClassVar[bool] = False
    own_budgets: ClassVar[Mapping[str, int]] = dict.fromkeys(("answer", "answer_from_text"), SHORT_TOKENS)
    kind: Literal["short_answer"] = "short_answer"
    prompt: str | Path = "short_answer"
    """A named set of words (`short_answer`) or a path to a YAML file with one's own."""
    answer_format: Literal["free"] = "free"
    """`free`: an answer in words has no form that could be enforced."""


class ExtractExplanationSpec(TaskSpec):
    """Have the model quote the part of a text that answers a question; the answer is a literal part of it, or none."""

    task_forms: ClassVar[tuple[Form, ...]] = ("explanations",)
    kind: Literal["extract_explanation"] = "extract_explanation"
    prompt: str | Path = "extraction"
    """A named set of words (`extraction`) or a path to a YAML file with one's own."""

    @property
    def own_budgets(self) -> Mapping[str, int]:
        """The one group of words that is asked with, `quote` or `sentences`, and its default."""
        return {"sentences" if self.answer_format == "guided" else "quote": QUOTE_TOKENS}


class QuoteSpec(ExtractExplanationSpec):
    """Have the model quote the part of a text that answers a question, in words that fit any question."""

    task_forms: ClassVar[tuple[Form, ...]] = ("spans",)
    kind: Literal["quote"] = "quote"  # type: ignore[assignment]
    prompt: str | Path = "spans"
    """A named set of words (`spans`) or a path to a YAML file with one's own."""
