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
from medexam.specs.optimizer import Metric, OptimizerKind
from medexam.specs.programs.needs import (
    NO_NEEDS,
    EngineNeeds,
    ReaderSettings,
    RetrievalSettings,
    WordFiles,
)

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
    def optimizers(self) -> tuple[OptimizerKind, ...]:
        """Those of DSPy's optimizers that can improve its instructions and demonstrations."""
        return ()

    @property
    def optimized_for(self) -> tuple[Metric, ...]:
        """What its candidates can be chosen by."""
        return "accuracy", "exam_score"

    @property
    def answers_anything(self) -> bool:
        """Whether it answers exams and questions in words alike."""
        return False

    @property
    def answers_tasks(self) -> bool:
        """Whether it answers in words, not by the number of an option."""
        return bool(self.task_forms)

    @property
    def engine_needs(self) -> EngineNeeds:
        """What its requests hold."""
        return NO_NEEDS

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
    def pictures(self) -> int | None:
        """Pixels that the longest side of a question's picture has at most, if it is shown; None where none is."""
        return None

    @property
    def words(self) -> WordFiles | None:
        """The files of its words; None where it has none."""
        return None

    @property
    def module_adapter(self) -> str | None:
        """DSPy's adapter of the module that it calls; None where it calls none."""
        return None

    @property
    def adapter_code(self) -> str | None:
        """The class of that adapter, as `module:Name`; None where it has a short name, or there is none."""
        return None

    @property
    def asked_groups(self) -> tuple[str, ...] | None:
        """The groups of questions that it has words for; None where it has the same words for all."""
        return None

    @property
    def option_text_norm(self) -> str | None:
        """How the log-probabilities of options' texts are made comparable; None where no texts are read."""
        return None

    @property
    def takes_labels(self) -> bool:
        """Whether a question with its answer alone is a demonstration of what it asks: not of one that reasons."""
        return not getattr(self, "reasons", True)

    @property
    def saved_as(self) -> dict[str, Any]:
        """What an optimized program's file says of it; only a program of the same loads it."""
        return {"kind": self.kind}

    @property
    def loads(self) -> Path | None:
        """The optimized program whose instructions and demonstrations replace its own; None: it asks in its own."""
        path: Path | None = getattr(self, "load", None)
        return path

    @property
    def codes(self) -> tuple[str, ...]:
        """All code of the user's own that it runs, as `module:Name`, that of its parts included; or an added kind."""
        return (self.kind,) if self.builder else ()

    @property
    def models(self) -> tuple[str, ...]:
        """The experiment's `models` that it asks beside its `model`, by name."""
        return ()

    def needs_of(self, model: str | None) -> EngineNeeds:
        """Return what its requests to one of `models` hold; None: to the experiment's `model`."""
        return self.engine_needs if model is None else NO_NEEDS

    @property
    def retrieval(self) -> RetrievalSettings | None:
        """How its passages are looked up; None where it sees none."""
        return None

    @property
    def is_asked_once(self) -> bool:
        """Whether it takes no samples and orders of its own, so that steps ask it several times instead."""
        return False

    @property
    def could_be_guided(self) -> bool:
        """Whether its replies may hold no legal answer, and `answer_format: guided` would change that."""
        return False

    @property
    def draws(self) -> bool:
        """Whether its replies must be drawn at a temperature."""
        return False

    @property
    def sets_temperature(self) -> bool:
        """Whether some of its replies are drawn at a temperature of its own."""
        return False

    @property
    def asks_repeatedly(self) -> bool:
        """Whether several replies to the same question vote."""
        return False

    @property
    def local_reader(self) -> ReaderSettings | None:
        """The local model that it has texts read by; None where it has none read."""
        name, revision = getattr(self, "reader", None), getattr(self, "revision", None)
        return None if name is None else ReaderSettings("entailment", name, revision)

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
        excluded |= {"k", "query", "query_language"} if self.retrieval is None else set()
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
