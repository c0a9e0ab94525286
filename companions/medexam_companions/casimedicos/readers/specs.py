"""Kinds of programs that have a local model read texts, and ask no engine.

The reading solvers of Vilares and Gómez-Rodríguez (2019).
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from medexam.specs import RetrievingSpec

_Count = Annotated[int, Field(ge=1)]


class ReadingSpec(RetrievingSpec):
    """Base of the programs that have a local model read passages."""

    builder: ClassVar[str] = "medexam_companions.casimedicos.readers.programs:build_reading"
    reader: str | Path
    """A folder or a hub id of a transformers model with its weights as safetensors."""
    revision: str | None = None
    """Revision of a hub reader; None takes the newest."""


class SpanReaderSpec(ReadingSpec):
    """Take the option that shares most with the span that a question answering model finds in passages.

    DrQA and BiDAF were used so for multiple choice. Of a task that brings its text along, the span itself.
    """

    finds: ClassVar[str] = "spans"
    kind: Literal["span_reader"] = "span_reader"
    k: _Count = 5
    """Passages a question; DrQA's 5."""
    answer_tokens: _Count = 30
    """Tokens of the longest span."""
    context: Literal["retrieved", "given"] = "retrieved"
    """`given` reads the text that a task brings along, and looks nothing up."""

    @property
    def asking(self) -> Any:
        """What it takes; where it reads the text of a task it looks nothing up, and answers with the span itself."""
        forms: Any = ("explanations", "spans")
        return replace(super().asking, forms=forms, retrieval=None) if self.context == "given" else super().asking

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind."""
        return [*super().label_words, *([] if self.answer_tokens == 30 else [f"tokens{self.answer_tokens}"])]


class EntailmentSpec(ReadingSpec):
    """Take the option that, put after the question, is entailed most by a sentence of the passages.

    DGEM and Decompatt were used so.
    """

    finds: ClassVar[str] = "entailment"
    kind: Literal["entailment"] = "entailment"
    query: Literal["stem", "stem_and_options", "per_option"] = "per_option"
    """What is looked up; `per_option` looks up the stem with each option, and each option is judged by its own
    passages; else all are judged by the same."""
