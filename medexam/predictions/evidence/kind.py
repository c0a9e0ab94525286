"""What a kind of evidence is: its fields beside an answer, and what runs, tables, the page and files say of them.

A kind's file names all of it; scoring, tables and the page loop over the kinds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from medexam.frozen_model import FrozenModel
from medexam.items import Gold
from medexam.predictions.core import CorePrediction
from medexam.tables import Captioned

F = TypeVar("F", bound="Figures")
P = TypeVar("P", bound=CorePrediction)


class Figures(FrozenModel, defer_build=True):
    """What `metrics.json` holds of a kind. Shares, probabilities and accuracies are fractions of 1."""


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[P, F]):
    """One kind of evidence."""

    figures: str
    """The keys of its figures in `metrics.json`, joined by points."""
    measure: Callable[[Sequence[tuple[P, Gold]]], F | None]
    """Makes them of the predictions that did not fail, each with its gold; None if none of them holds the evidence."""
    tables: Callable[[F], Iterable[Captioned]]
    """What a report shows of them, each table with its caption."""
    page: Callable[[P], Mapping[str, Any]]
    """What the page shows of one answer, JSON-ready; a value of None is left out."""

    def of(self, metrics: object) -> F | None:
        """Return the figures that a run's metrics hold; None if they hold none."""
        group, _, name = self.figures.rpartition(".")
        holder = attrgetter(group)(metrics) if group else metrics
        figures: F | None = getattr(holder, name, None)
        return figures
