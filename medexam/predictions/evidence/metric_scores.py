"""What the metric of a `medexam.Evaluate` said."""

from dataclasses import dataclass
from operator import not_
from typing import Annotated, Any

from pydantic import Field

from medexam.frozen_model import FrozenModel
from medexam.predictions.core import CorePrediction


class MetricScore(FrozenModel, allow_inf_nan=False):
    """What the metric of a `medexam.Evaluate` said of an answer."""

    metric: str
    """The metric's name."""
    value: bool | int | float
    """As the metric returned it; the `score` of a `dspy.Prediction`."""
    feedback: str | None = None
    """What the metric said beside the number, or why a fault was scored. Left out where it said nothing."""
    details: Annotated[dict[str, Any], Field(exclude_if=not_)] = Field(default_factory=dict)
    """Other fields of the metric's `dspy.Prediction`. Left out if there are none."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MetricScoreFields(CorePrediction):
    """An answer with what a metric said of it."""

    __slots__ = ()

    metric_score: MetricScore | None = None
    """What the metric of a `medexam.Evaluate` said. Left out elsewhere, and where it could not be asked."""
