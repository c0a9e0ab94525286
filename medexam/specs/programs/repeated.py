"""Programs that look again: they judge what they found, or search for more, before they answer."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from medexam.specs.optimizer import OptimizerKind
from medexam.specs.programs.base import PositiveInt
from medexam.specs.programs.needs import EngineNeeds, ReaderSettings, RetrievalSettings
from medexam.specs.programs.replies import BehindPassagesSpec
from medexam.specs.programs.retrieving import RetrievingSpec, SearchSpec
from medexam.specs.retriever import RetrieverSpec


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

    kind: Literal["retrieve_verify"] = "retrieve_verify"
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
        return ("helps", "supports", "answer_yes", "answer_no") if self.reader is None else ()

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        judge = [] if self.reader is None else [Path(self.reader).name]
        judge += [f"from_{self.least:g}"] if self.least != 0.5 else []
        unsupported_labels = [] if self.unsupported == "keep" else [self.unsupported]
        return "-".join([super().label, *self.then_label, self.retrieval_label, *judge, *unsupported_labels])
