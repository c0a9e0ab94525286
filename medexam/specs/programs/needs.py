"""What programs need of those who carry them out, as plain values: a provider need not know the program."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from medexam.questions import Language
from medexam.specs.catalogue import Form
from medexam.specs.retriever import RetrieverSpec

if TYPE_CHECKING:
    from medexam.specs.programs.words import WordsSpec

PositiveInt = Annotated[int, Field(ge=1)]
AnswerFormat = Literal["free", "guided"]
AnswerForm = Literal["braces", "angles"]
Query = Literal["stem", "stem_and_options", "per_option"]
OptimizerKind = Literal["labeled", "knn", "bootstrap", "random_search", "mipro", "gepa", "copro"]
Metric = Literal["accuracy", "exam_score", "log_probability"]
"""What an optimizer chooses by."""
MODULE = "module"
"""The kind under which optimized modules are saved, whatever they are called."""


@dataclass(frozen=True)
class EngineNeeds:
    """What requests will hold; an engine that does not honour it refuses before anything is asked."""

    guided: bool = False
    """Choices among given texts."""
    logprobs: bool = False
    chat: bool = False
    """Dialogues, which the model's chat template renders."""
    plain: bool = False
    """Plain texts, which replies continue."""
    closes: bool = False
    """Replies that continue thinking that was cut off."""
    pictures: bool = False
    tools: bool = False
    """Tools and schemas of JSON, in the server's own form where it has one and in words where it has none."""

    def __or__(self, other: "EngineNeeds") -> "EngineNeeds":
        return EngineNeeds(
            **{need.name: getattr(self, need.name) or getattr(other, need.name) for need in fields(self)}
        )


NO_NEEDS = EngineNeeds()


@dataclass(frozen=True)
class RetrievalSettings:
    """How a program's passages are looked up."""

    retriever: RetrieverSpec
    k: int
    """Passages a question."""
    query: Query | Literal["written"]
    """What is looked up; `written`: what the model writes while it is asked, so nothing is looked up before."""
    query_language: Language | None
    """The language of the queries; None: that of the questions."""

    @classmethod
    def of(cls, spec: Any) -> "RetrievalSettings":
        """Return those of a program that has these fields."""
        return cls(spec.retriever, spec.k, spec.query, spec.query_language)


@dataclass(frozen=True)
class Asking:
    """What a program asks, and takes; by default that of one that asks nothing."""

    forms: tuple[Form, ...] | None = ("choice",)
    """The forms of questions that it answers; None: any."""
    engine_needs: EngineNeeds = NO_NEEDS
    """What its requests to the experiment's `model` hold."""
    models: Mapping[str, EngineNeeds] = field(default_factory=dict)
    """The experiment's `models` that it asks beside its `model`, by name -> what its requests to it hold."""
    words: "WordsSpec | None" = None
    """The words that ship in which it asks for the answer; None where it has none."""
    pictures: int | None = None
    """Pixels that the longest side of a question's picture has at most, if it is shown; None where none is."""
    draws: tuple[str | None, ...] = ()
    """The models, None the experiment's `model`, that must draw replies at a temperature of their own."""
    sets_temperature: bool = False
    """Whether some of its replies are drawn at a temperature of its own."""
    votes: bool = False
    """Whether several answers to a question become one, which takes numbered options."""
    optimizable: bool = False
    """Whether an optimizer can improve its instructions and demonstrations."""
    saved_as: Mapping[str, Any] = field(default_factory=dict)
    """What an optimized program's file says of it; only a program of the same loads it."""
    codes: tuple[str, ...] = ()
    """All code of the user's own that it runs, as `module:Name`, that of its parts included; or an added kind."""
    retrieval: RetrievalSettings | None = None
    """How its passages are looked up; None where it sees none."""
    local_reader: tuple[str | Path, str | None] | None = None
    """The folder or hub id of the local model that it has texts read by, and its revision; None: it has none read."""
    adapter: str | None = None
    """DSPy's adapter of the modules that it calls, a class as `module:Name`; None where it calls none."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of questions that it has words of their own for; empty where all have the same."""
        return self.words.parts if self.words is not None and self.forms == ("formats",) else ()
