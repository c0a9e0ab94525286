"""What programs need of those who carry them out, as plain values: a provider need not know the program."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from medexam.questions import Language
from medexam.specs.retriever import RetrieverSpec

AnswerFormat = Literal["free", "guided"]
AnswerForm = Literal["braces", "angles"]
Query = Literal["stem", "stem_and_options", "per_option"]
AnyQuery = Query | Literal["written"]


@dataclass(frozen=True)
class EngineNeeds:
    """What requests will hold; an engine that does not honour it refuses before anything is asked."""

    guided: bool = False
    """Choices among given texts."""
    logprobs: bool = False
    """Texts whose log-probabilities are read."""
    chat: bool = False
    """Dialogues, which the model's chat template renders."""
    plain: bool = False
    """Plain texts, which replies continue."""
    closes: bool = False
    """Replies that continue thinking that was cut off."""
    pictures: bool = False
    """Pictures beside texts."""
    tools: bool = False
    """Tools and schemas of JSON, in the server's own form where it has one and in words where it has none."""

    def __or__(self, other: "EngineNeeds") -> "EngineNeeds":
        return EngineNeeds(
            **{need.name: getattr(self, need.name) or getattr(other, need.name) for need in fields(self)}
        )


NO_NEEDS = EngineNeeds()


@dataclass(frozen=True)
class WordFiles:
    """The files that a program takes its words from, and which part of them."""

    layout: Literal["instructions", "likelihood", "groups"]
    """How the prompt file is laid out: instructions by kind of program, contexts of likelihoods, or templates by group
    of questions."""
    prompt: str | Path
    """A named set of words or a YAML file."""
    parts: tuple[str, ...]
    """What is taken of the prompt file."""
    answer_form: AnswerForm = "braces"
    """The form of answer that the words ask for."""
    examples: str | Path | None = None
    """A named set of solved examples or a YAML file; None shows none."""
    language: Language | None = None
    """The language of the words; None: that of the questions."""


@dataclass(frozen=True)
class RetrievalSettings:
    """How a program's passages are looked up."""

    retriever: RetrieverSpec
    k: int
    """Passages a question."""
    query: AnyQuery
    """What is looked up; `written`: what the model writes while it is asked, so nothing is looked up before."""
    query_language: Language | None
    """The language of the queries; None: that of the questions."""


@dataclass(frozen=True)
class ReaderSettings:
    """The local model that a program has texts read by."""

    finds: str
    """The name under which a package registers what reads with it."""
    model: str | Path
    """A folder or a hub id."""
    revision: str | None
    """Revision of a hub model; None: the newest."""
    answer_tokens: int | None = None
    """Tokens of the longest span; None where it finds none."""
