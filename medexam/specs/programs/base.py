"""What every program says of itself, so that nobody needs to ask which kind it is."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from pydantic import Field

from medexam.model_calls import Reading
from medexam.questions import Language
from medexam.specs.base import Spec, short_name
from medexam.specs.programs.needs import NO_NEEDS, Asking, Query, ReaderSettings, RetrievalSettings
from medexam.specs.retriever import RetrieverSpec

if TYPE_CHECKING:
    from medexam.specs.programs.flows import FlowSpec

PositiveInt = Annotated[int, Field(ge=1)]
_BY_CONTENT = {"name", "prompt", "prompt_language", "examples", "instructions", "demos", "load", "max_tokens", "file"}
_BY_CONTENT |= {"reading", "retriever", "query_language", "reader", "revision"}
"""Fields of which a run's identity holds the content, or nothing."""
_NAMES = {"kind", "by", "combine", "adapter"}
"""Fields that may name the user's own code, whose source an identity holds."""
_ALWAYS = ("read", "option")
LABELS: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {
        **dict.fromkeys(("read", "option", "split", "module", "answer_format", "answer_form", "norm"), "{}".format),
        "context": lambda context: "options_shown" if context == "stem_and_options" else "",
        "chat_template": "chat".format,
        "abstain_below": "abstain_{:g}".format,
        "read_by": "{}".format,
        "reader": lambda reader: Path(reader).name,
        "prompt": lambda prompt: Path(prompt).stem,
        "prompt_language": "words_{}".format,
        "images": "images".format,
        "image_side": "side{}".format,
        "answer_after_budget": "closed".format,
        "adapter": short_name,
        "load": "optimized".format,
        "samples": "samples{}".format,
        "orders": "{}".format,
        "then": "{}".format,
        "retriever": lambda retriever: str(retriever.label),
        "query": "{}".format,
        "k": "k{}".format,
        "query_language": "by_{}".format,
    }
)
"""Field of a program -> how tables and folders show a value that is not its default, in this order."""


class ProgramSpec(Spec):
    """Base of every kind of program; what it does not override is what a program does that asks no model."""

    if TYPE_CHECKING:
        kind: str  # A field of each kind's own, after those that it inherits.

    builder: ClassVar[str] = ""
    """What builds the program of a kind that a package adds, as `package.module:function`: of its spec, the language of
    the questions and a `ProgramContext`."""

    @property
    def asking(self) -> Asking:
        """What it asks and takes."""
        return Asking(codes=(self.kind,) if self.builder else ())

    @property
    def flow(self) -> "FlowSpec | None":
        """The steps that it is; None of one that is code."""
        return None

    @property
    def asks_model(self) -> bool:
        """Whether an engine is needed."""
        return self.asking.engine_needs != NO_NEEDS or bool(self.asking.models)

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return "-".join([getattr(self, "name", None) or self.kind, *self.label_words])

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind, for tables and folders."""
        fields, words = type(self).model_fields, []
        for name in filter(fields.__contains__, LABELS):
            value, default = getattr(self, name), fields[name].default
            differs = self.asking.retrieval is not None if name == "retriever" else name in _ALWAYS or value != default
            words += [LABELS[name](value)] if value is not None and differs else []
        return [word for word in words if word]

    @property
    def loads(self) -> Path | None:
        """The optimized program whose instructions and demonstrations replace its own; None: it asks in its own."""
        path: Path | None = getattr(self, "load", None)
        return path

    @property
    def read_as(self) -> Reading:
        """How its replies are read where they are scored."""
        reading: Reading = getattr(self, "reading", "strict")
        return reading

    def budget(self, of_model: int | None) -> Any:  # noqa: ARG002
        """Return the tokens a reply may have, or by group of words, where the model's own spec says `of_model`.

        None where the model writes no reply.
        """
        return None


def describe(value: Any) -> Any:
    """Describe, as JSON-ready data, what an answer depends on beside files, code, retriever, local model and tokens.

    A program that is steps is told by these.
    """
    if isinstance(value, Spec):
        part = (value.flow if isinstance(value, ProgramSpec) else None) or value
        fields = {name: getattr(part, name) for name in type(part).model_fields if name not in _BY_CONTENT}
        return {
            name: short_name(field) if name in _NAMES else describe(field)
            for name, field in fields.items()
            if field is not None
        }
    return [describe(entry) for entry in value] if isinstance(value, tuple | list) else value


class LookUpSpec(ProgramSpec):
    """Base of the programs that may look up passages for each question, and have a local model read them."""

    finds: ClassVar[str] = ""
    """What a local model, the field `reader`, finds in a text, as its entry point is called; empty: none reads."""
    retriever: RetrieverSpec | None = None
    """None looks up no passages."""
    k: PositiveInt = 2
    """Passages a question; the paper's 2."""
    query: Query = "stem"
    """What is looked up; `per_option` looks up the stem with each option and takes the best passages over all."""
    query_language: Language | None = None
    """Look up the same question in this language, found by its key; None: the language that is asked."""

    @property
    def asking(self) -> Asking:
        """What it takes: its passages, none without a retriever, and the model that reads them."""
        asking, spec = super().asking, cast("Any", self)
        if self.retriever is not None:
            retrieval = RetrievalSettings(self.retriever, self.k, self.query, self.query_language)
            asking = replace(asking, retrieval=retrieval)
        if self.finds:
            tokens = getattr(self, "answer_tokens", None)
            asking = replace(asking, local_reader=ReaderSettings(self.finds, spec.reader, spec.revision, tokens))
        return asking


class RetrievingSpec(LookUpSpec):
    """Base of the programs that look up passages."""

    retriever: RetrieverSpec = RetrieverSpec()
