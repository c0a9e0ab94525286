"""What the programs that look up passages share."""

from dataclasses import replace
from typing import Self

from medexam.questions import Language
from medexam.specs.programs.base import PositiveInt, ProgramSpec
from medexam.specs.programs.needs import Asking, Query, RetrievalSettings
from medexam.specs.retriever import RetrieverSpec


class SearchSpec(ProgramSpec):
    """Base of the programs that search a corpus."""

    retriever: RetrieverSpec | None = None
    """None looks up no passages."""
    k: PositiveInt = 2
    """Passages a question; the paper's 2."""


class LookUpSpec(SearchSpec):
    """Base of the programs that may look up passages for each question."""

    query: Query = "stem"
    """What is looked up; `per_option` looks up the stem with each option and takes the best passages over all."""
    query_language: Language | None = None
    """Look up the same question in this language, found by its key; None: the language that is asked."""

    @property
    def asking(self) -> Asking:
        """What it takes: its passages; none without a retriever."""
        if self.retriever is None:
            return super().asking
        retrieval = RetrievalSettings(self.retriever, self.k, self.query, self.query_language)
        return replace(super().asking, retrieval=retrieval)

    def normal(self, language: Language) -> Self:
        """Return the same program for questions in `language`, with values instead of what stands for them."""
        return self.model_copy(update={"query_language": self.query_language or language})

    @property
    def retrieval_label(self) -> str:
        """Short name of how passages are found."""
        words = [] if self.retriever is None else [self.retriever.label]
        if self.query != "stem":
            words.append(self.query)
        if self.k != 2:
            words.append(f"k{self.k}")
        if self.query_language is not None:
            words.append(f"by_{self.query_language}")
        return "-".join(words)


class RetrievingSpec(LookUpSpec):
    """Base of the programs that look up passages."""

    retriever: RetrieverSpec = RetrieverSpec()
