"""Programs that look again: they judge what they found, or search for more, before they answer."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from medexam.specs.optimizer import OptimizerKind
from medexam.specs.programs.base import PositiveInt
from medexam.specs.programs.needs import RetrievalSettings, WordFiles
from medexam.specs.programs.replies import BehindPassagesSpec
from medexam.specs.programs.retrieving import SearchSpec
from medexam.specs.retriever import RetrieverSpec


class SideWordsSpec(BehindPassagesSpec):
    """Base of the programs that ask the model something beside the question itself."""

    optimizers: ClassVar[tuple[OptimizerKind, ...]] = ()
    retrieval_prompt: str | Path = "retrieval"
    """A named set of words (`retrieval`) or a path to a YAML file with one's own, for all that is asked beside the
    question."""

    @model_validator(mode="after")
    def _asks_once(self) -> Self:
        if self.samples > 1 or self.orders != "given" or self.load is not None:
            raise ValueError(f"{self.kind} takes no samples, orders or load: leave them out")
        return self

    @property
    def side_groups(self) -> tuple[str, ...]:
        """The groups of words that it asks with beside the question."""
        raise NotImplementedError

    @property
    def side_words(self) -> WordFiles:
        """The file of what it asks beside the question itself."""
        return WordFiles("groups", self.retrieval_prompt, self.side_groups, language=self.prompt_language)


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
        kept = ["passages"] if self.keep == "passages" else []
        return "-".join([super().label, *self.then_label, self.retriever.label, *numbers, *kept])
