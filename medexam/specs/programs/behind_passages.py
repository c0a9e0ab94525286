"""Programs that ask behind passages of a corpus (the paper's section 3.2.2), or behind what is asked beside it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from medexam.specs.catalogue import Form
from medexam.specs.optimizer import OptimizerKind
from medexam.specs.programs.base import PositiveInt
from medexam.specs.programs.needs import EngineNeeds, RetrievalSettings, WordFiles
from medexam.specs.programs.replies import ReplySpec
from medexam.specs.programs.retrieving import RetrievingSpec, SearchSpec
from medexam.specs.programs.tasks import ByFormatSpec, ShortAnswerSpec
from medexam.specs.retriever import RetrieverSpec

_IN_WORDS: Mapping[str, type[ByFormatSpec] | type[ShortAnswerSpec]] = MappingProxyType(
    {"by_format": ByFormatSpec, "short_answer": ShortAnswerSpec}
)
"""What `then` may be for questions that are answered in words."""
_OF_OPTIONS = ("reader", "answer_form", "reading", "answer_after_budget", "images")
"""Settings that need numbered options."""


class BehindPassagesSpec(ReplySpec):
    """Base of the programs that ask another program's question after what they found."""

    asks_in_words: ClassVar[bool] = False
    then: Literal["zero_shot", "few_shot", "chain_of_thought"] = "zero_shot"
    """How the question is asked after its passages, in that program's words."""
    examples: str | Path = "paper"
    """A named set of examples (`paper`) or a path to a YAML file with one's own, for `then: few_shot`."""

    retrieval_prompt: str | Path = "retrieval"
    """A named set of words (`retrieval`) or a path to a YAML file with one's own, for all that is asked beside the
    question."""

    @property
    def side_groups(self) -> tuple[str, ...]:
        """The groups of words that it asks with beside the question."""
        return ()

    @property
    def side_words(self) -> WordFiles | None:
        """The file of what it asks beside the question itself; None where it asks nothing else."""
        groups = self.side_groups
        return WordFiles("groups", self.retrieval_prompt, groups, language=self.prompt_language) if groups else None

    def once(self, setting: str) -> Self:
        """Raise `ValueError`, naming `setting`, if a question is asked several times or words are loaded."""
        if self.samples > 1 or self.orders != "given" or self.load is not None:
            raise ValueError(f"{setting} takes no samples, orders or load: leave them out")
        return self

    @model_validator(mode="after")
    def _examples_are_shown(self) -> Self:
        if self.then != "few_shot" and "examples" in self.model_fields_set and self.examples != "paper":
            raise ValueError(f"examples belongs to `then: few_shot`, and `then` is {self.then!r}: leave it out")
        return self

    @property
    def words(self) -> WordFiles:
        """The files of its words, with `then: few_shot` that of its examples too."""
        return replace(super().words, examples=self.examples if self.then == "few_shot" else None)

    @property
    def asked_as(self) -> str:
        """The kind of program that the question is asked as after its passages."""
        return self.then

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        return [*super().label_words, *self.marks(then="{}")]


class RetrieveThenAnswerSpec(BehindPassagesSpec, RetrievingSpec):
    """Show passages of a corpus before the question (the paper's section 3.2.2), then ask."""

    kind: Literal["retrieve_then_answer"] = "retrieve_then_answer"
    cite: bool = False
    """Number the passages and have the reply name the one that supports its answer, such as `{Answer: 3} [2]`; guided
    where the answer is."""
    reader: str | Path | None = None
    """A folder or a hub id of a model of natural language inference that scores each citation; None scores none."""
    revision: str | None = None
    """Revision of a hub reader; None takes the newest."""

    @model_validator(mode="after")
    def _citations_are_whole(self) -> Self:
        if self.reader is not None and not self.cite:
            raise ValueError("reader scores citations: set cite to true, or leave reader out")
        return self.once("cite") if self.cite else self

    @property
    def side_groups(self) -> tuple[str, ...]:
        """The words that ask for a citation."""
        return ("cite",) if self.cite else ()

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        return [*super().label_words, self.retrieval_label, *self.marks(cite="cite")]


class SideWordsSpec(BehindPassagesSpec):
    """Base of the programs that ask the model something beside the question itself."""

    optimizers: ClassVar[tuple[OptimizerKind, ...]] = ()

    @model_validator(mode="after")
    def _asks_once(self) -> Self:
        return self.once(self.kind)


class IterativeRetrievalSpec(SideWordsSpec, SearchSpec):
    """Have the model write queries, read what they find and write more, then ask the question with what was found.

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
    """What is shown before later queries and the question: `answers` has each query answered from its passages in a
    few sentences, as i-MedRAG does; `passages` keeps the passages themselves and asks less."""

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
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        numbers = self.marks(k="k{}", rounds="rounds{}", queries="queries{}", keep="{}")
        return [*super().label_words, self.retriever.label, *numbers]


class RetrieveVerifySpec(SideWordsSpec, RetrievingSpec):
    """Drop the passages in which a verifier finds no help, ask with the others, and check the answer against them."""

    then_by_form: ClassVar[Mapping[Form, str]] = MappingProxyType(
        {"formats": "by_format", "short_answer": "short_answer"}
    )
    kind: Literal["retrieve_verify"] = "retrieve_verify"
    then: Literal["zero_shot", "few_shot", "chain_of_thought", "by_format", "short_answer"] = "zero_shot"  # type: ignore[assignment]
    """How the question is asked after its passages, in that program's words; questions that are answered in words
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
                f"{', '.join(exams_own)} belongs to numbered options, and `then: {self.then!r}` answers in words: "
                "leave it out"
            )
        if self.then == "short_answer" and self.answer_format == "guided":
            raise ValueError("answer_format guided cannot constrain short answers: leave it out")
        return self

    def _is_own(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    @property
    def in_words(self) -> ByFormatSpec | ShortAnswerSpec | None:
        """The program that answers in words after the passages; None where an option is chosen."""
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
    def could_be_guided(self) -> bool:
        """Whether it asks freely what could be chosen."""
        return super().could_be_guided if self.in_words is None else self.in_words.could_be_guided

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have, by group of words where it answers in words."""
        return super().budget(of_model) if self.in_words is None else self.in_words.budget(of_model)

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
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        judges = [] if self.reader is None else [Path(self.reader).name]
        judges += self.marks(least="from_{:g}", unsupported="{}")
        return [*super().label_words, self.retrieval_label, *judges]
