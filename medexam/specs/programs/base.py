"""What every program says of itself, so that nobody needs to ask which kind it is."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field

from medexam.model_calls import Reading
from medexam.questions import Language
from medexam.specs.base import Spec
from medexam.specs.catalogue import Form
from medexam.specs.programs.needs import NO_NEEDS, Asking, EngineNeeds

PositiveInt = Annotated[int, Field(ge=1)]


class ProgramSpec(Spec):
    """Base of every kind of program; what it does not override is what a program does that asks no model."""

    if TYPE_CHECKING:
        kind: str  # A field of each kind's own, after those that it inherits.

    asks_model: ClassVar[bool] = False
    """Whether an engine is needed."""
    by_content: ClassVar[set[str]] = {"name", "prompt", "prompt_language", "examples", "load"}
    """Fields that say where words are; the words themselves are part of a run's identity."""
    builder: ClassVar[str] = ""
    """What builds the program of a kind that a package adds, as `package.module:function`: of its spec, the language of
    the questions and a `ProgramContext`."""
    task_forms: ClassVar[tuple[Form, ...]] = ()
    """The forms of questions that it answers in words; empty if it answers exams alone."""
    then_by_form: ClassVar[Mapping[Form, str]] = MappingProxyType({})
    """Form of questions -> what its `then` is for them unless a spec says so."""

    @property
    def asking(self) -> Asking:
        """What it asks and takes."""
        return Asking(codes=(self.kind,) if self.builder else ())

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return "-".join([getattr(self, "name", None) or self.kind, *self.label_words])

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind, for tables and folders."""
        return []

    def marks(self, **forms: str) -> list[str]:
        """Return the form of each field that has another value than its default, filled with that value."""
        values = {name: getattr(self, name) for name in forms}
        fields = type(self).model_fields
        return [forms[name].format(value) for name, value in values.items() if value != fields[name].default]

    @property
    def model_name(self) -> str | None:
        """The model whose answers it holds without asking it; None for every program that answers by itself."""
        name: str | None = getattr(self, "answered_by", None)
        return name

    @property
    def asked_as(self) -> str:
        """The kind of words that the question is asked in."""
        return getattr(self, "then", None) or self.kind

    @property
    def loads(self) -> Path | None:
        """The optimized program whose instructions and demonstrations replace its own; None: it asks in its own."""
        path: Path | None = getattr(self, "load", None)
        return path

    def needs_of(self, model: str | None) -> EngineNeeds:
        """Return what its requests to one of `models` hold; None: to the experiment's `model`."""
        return self.asking.engine_needs if model is None else NO_NEEDS

    @property
    def is_asked_once(self) -> bool:
        """Whether it takes no samples and orders of its own, so that steps ask it several times instead."""
        return False

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

    def facts(self, language: Language) -> dict[str, Any]:
        """Describe, as JSON-ready data, what an answer depends on of it beside what its files hold, its retriever, its
        local model and its tokens.
        """
        excluded = self.by_content | {"max_tokens", "reading", "retriever", "reader", "revision"}
        excluded |= {"k", "query", "query_language"} if self.asking.retrieval is None else set()
        return self.normal(language).model_dump(mode="json", exclude=excluded)

    def normal(self, language: Language) -> Self:  # noqa: ARG002
        """Return the same program for questions in `language`, with values instead of what stands for them."""
        return self


class WordsSpec(ProgramSpec):
    """Base of what asks in the words of a prompt file."""

    if TYPE_CHECKING:
        prompt: str | Path | None  # A field of each kind's own, with a default of its own.

    prompt_language: Language | None = None
    """The language of the prompt's words, such as `en` for words in English around questions in any language; None:
    that of the questions."""

    @property
    def words_label(self) -> list[str]:
        """What tells these words from the program's own, for tables and folders."""
        own = type(self).model_fields["prompt"].default
        prompt_names = [Path(self.prompt).stem] if self.prompt is not None and str(self.prompt) != own else []
        return prompt_names if self.prompt_language is None else [*prompt_names, f"words_{self.prompt_language}"]
