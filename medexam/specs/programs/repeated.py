"""Programs that look again: they judge what they found, or search for more, before they answer."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from medexam.specs.catalogue import Form
from medexam.specs.optimizer import OptimizerKind
from medexam.specs.programs.base import PositiveInt
from medexam.specs.programs.needs import EngineNeeds, ReaderSettings, RetrievalSettings, WordFiles
from medexam.specs.programs.replies import BehindPassagesSpec
from medexam.specs.programs.retrieving import RetrievingSpec, SearchSpec
from medexam.specs.programs.tasks import ByFormatSpec, ShortAnswerSpec
from medexam.specs.retriever import RetrieverSpec

_IN_WORDS: Mapping[str, type[ByFormatSpec] | type[ShortAnswerSpec]] = MappingProxyType(
    {"by_format": ByFormatSpec, "short_answer": ShortAnswerSpec}
)
"""What `then` may be for questions that are answered in words."""
_OF_OPTIONS = ("reader", "answer_form", "reading", "answer_after_budget", "images")
"""Settings that need numbered options."""


class SideWordsSpec(BehindPassagesSpec):
    """Base of the programs that ask the model something beside the question itself."""

    optimizers: ClassVar[tuple[OptimizerKind, ...]] = ()

    @model_validator(mode="after")
    def _asks_once(self) -> Self:
        return self.once(self.kind)


class IterativeRetrievalSpec(SideWordsSpec, SearchSpec):
    """Have the model write queries, read what they find and write more, then ask the question behind it.

    Xiong et al. (2024), "Improving Retrieval-Augmented Generation in Medicine with Iterative Follow-up Questions"
    (i-MedRAG).
    """

    kind: Literal["iterative_retrieval"] = "iterative_retrieval"
    retriever: RetrieverSpec = RetrieverSpec()
    k: PositiveInt = 2
    """Passages a query."""
    rounds: Annotated[int, Field(ge=1, le=20)] = 3
    """How often queries are written; fewer where the model has no further query."""
    queries: Annotated[int, Field(ge=1, le=20)] = 2
    """Queries a round."""
    keep: Literal["answers", "passages"] = "answers"
    """What later queries and the question stand behind: `answers` has each query answered from its passages in a few
    sentences, as i-MedRAG does; `passages` keeps the passages themselves and asks less."""

    @property
    def retrieval(self) -> RetrievalSettings:
        """How its passages are looked up."""
        return RetrievalSettings(self.retriever, self.k, "written", None)

    @property
    def side_groups(self) -> tuple[str, ...]:
        """The groups of words that it asks with beside the question."""
        reading = ("answer_query", "note") if self.keep == "answers" else ()
        return ("first_queries", "further_queries", *reading)

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        numbers = [f"k{self.k}"] if self.k != 2 else []
        numbers += [f"rounds{self.rounds}"] if self.rounds != 3 else []
        numbers += [f"queries{self.queries}"] if self.queries != 2 else []
        keep_labels = ["passages"] if self.keep == "passages" else []
        return "-".join([super().label, *self.then_label, self.retriever.label, *numbers, *keep_labels])


class RetrieveVerifySpec(SideWordsSpec, RetrievingSpec):
    """Drop the passages that a verifier finds no help in, ask behind the others, and check the answer against them."""

    then_by_form: ClassVar[Mapping[Form, str]] = MappingProxyType(
        {"formats": "by_format", "short_answer": "short_answer"}
    )
    kind: Literal["retrieve_verify"] = "retrieve_verify"
    then: Literal["zero_shot", "few_shot", "chain_of_thought", "by_format", "short_answer"] = "zero_shot"  # type: ignore[assignment]
    """How the question is asked behind its passages, in that program's words; questions that are answered in words
    have `by_format` or `short_answer` by themselves."""
    retriever: RetrieverSpec = RetrieverSpec(kind="fusion")
    k: PositiveInt = 5
    """Passages a question, before any is dropped."""
    reader: str | Path | None = None
    """A folder or a hub id of a model of natural language inference that judges; None: the model itself is asked, yes
    or no, guided."""
    revision: str | None = None
    """Revision of a hub reader; None takes the newest."""
    least: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The probability of entailment from which the reader keeps a passage, for any option, and supports an answer."""
    unsupported: Literal["keep", "abstain"] = "keep"
    """What becomes of an answer that the kept passages do not support: `abstain` leaves its question blank."""

    @model_validator(mode="after")
    def _fits_answers_in_words(self) -> Self:
        if self.then not in _IN_WORDS:
            return self
        if exams_own := [name for name in _OF_OPTIONS if name in self.model_fields_set and self._is_own(name)]:
            raise ValueError(
                f"{', '.join(exams_own)} belongs to numbered options, and then {self.then!r} answers in words: leave "
                "it out"
            )
        if self.then == "short_answer" and self.answer_format == "guided":
            raise ValueError("answer_format guided has no form to enforce in short answers: leave it out")
        return self

    def _is_own(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    @property
    def in_words(self) -> ByFormatSpec | ShortAnswerSpec | None:
        """The program that answers in words behind the passages; None where an option is chosen."""
        if self.then not in _IN_WORDS:
            return None
        settings = {name: getattr(self, name) for name in ("answer_format", "max_tokens", "prompt_language")}
        prompt = {"prompt": self.prompt} if self._is_own("prompt") else {}
        return _IN_WORDS[self.then](**settings, **prompt)

    @property
    def answers_tasks(self) -> bool:
        """Whether it answers in words, not by the number of an option."""
        return self.in_words is not None

    @property
    def words(self) -> WordFiles:
        """The files of its words."""
        return super().words if self.in_words is None else self.in_words.words

    @property
    def asked_groups(self) -> tuple[str, ...] | None:
        """The groups of questions that it has words for; None where it has the same words for all."""
        return None if self.in_words is None else self.in_words.asked_groups

    @property
    def readers(self) -> tuple[str, ...]:
        """What reads its replies, by the names in `READINGS`."""
        return super().readers if self.in_words is None else self.in_words.readers

    @property
    def could_be_guided(self) -> bool:
        """Whether it asks freely what could be chosen."""
        return super().could_be_guided if self.in_words is None else self.in_words.could_be_guided

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have, by group of words where it answers in words."""
        return super().budget(of_model) if self.in_words is None else self.in_words.budget(of_model)

    @property
    def local_reader(self) -> ReaderSettings | None:
        """The local model that judges; None where the model itself does."""
        return None if self.reader is None else ReaderSettings("entailment", self.reader, self.revision)

    @property
    def engine_needs(self) -> EngineNeeds:
        """What its requests hold: dialogues, and a choice for each verdict of the model."""
        return EngineNeeds(chat=True, guided=self.answer_format == "guided" or self.reader is None)

    @property
    def side_groups(self) -> tuple[str, ...]:
        """The groups of words that it asks with beside the question; none where a reader judges."""
        if self.reader is not None:
            return ()
        groups = ("helps", "supports", "answer_yes", "answer_no")
        return groups if self.in_words is None else (*groups, "wrong_answer")

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        judge = [] if self.reader is None else [Path(self.reader).name]
        judge += [f"from_{self.least:g}"] if self.least != 0.5 else []
        unsupported_labels = [] if self.unsupported == "keep" else [self.unsupported]
        return "-".join([super().label, *self.then_label, self.retrieval_label, *judge, *unsupported_labels])
