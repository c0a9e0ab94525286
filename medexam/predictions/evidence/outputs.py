"""What a module of the user's own returned beside its answer."""

from dataclasses import dataclass
from operator import not_
from typing import Annotated

from pydantic import Field, JsonValue

from medexam.predictions.core import CorePrediction


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class OutputFields(CorePrediction):
    """An answer with the outputs of a module."""

    __slots__ = ()

    outputs: Annotated[dict[str, JsonValue] | None, Field(exclude_if=not_)] = None
    """What a module of the user's own returned, as JSON: beside `answer` and its reasoning, or every field for an
    example of `medexam.Evaluate`. Left out of a line where it returned nothing else."""
