"""The answers of several replies to one question."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from medexam.predictions.core import CorePrediction


@dataclass(frozen=True, kw_only=True)
class VoteFields(CorePrediction):
    """An answer with the votes that it was made of."""

    __slots__ = ()

    votes: Annotated[tuple[int | None, ...] | None, Field(exclude_if=lambda votes: votes is None)] = None
    """The answer of each of several replies, in their order; None for a reply without a legal one. Left out
    of a line where no votes were counted."""
