"""Passages that were looked up for a question."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from medexam.frozen_model import FrozenModel
from medexam.predictions.core import CorePrediction, Count


class RetrievedPassage(FrozenModel, allow_inf_nan=False):
    """A passage that a question's query found."""

    id: str
    source: str
    """The collection that it comes from."""
    score: float
    """In the retriever's own unit; the higher the more relevant."""
    kept: Annotated[bool | None, Field(exclude_if=lambda flag: flag is None)] = None
    """Whether a verifier kept it for the prompt; left out where none judged."""
    support: Annotated[float | None, Field(exclude_if=lambda support: support is None)] = None
    """The highest probability, 0 to 1, with which it entails an option, by a reader; left out where none judged."""


@dataclass(frozen=True, kw_only=True)
class PassageFields(CorePrediction):
    """An answer with the passages that were found."""

    __slots__ = ()

    passages: tuple[RetrievedPassage, ...] | None = None
    """The passages that were found, most relevant first; None where none were looked for."""
    passages_cut: Count | None = None
    """Characters of the passages that were left out because the context was too small; None where none were shown."""
