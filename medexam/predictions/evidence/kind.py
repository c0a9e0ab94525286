"""What a kind of evidence is: its fields beside an answer, and what runs, tables, the page and files say of them.

A kind's file names all of it; scoring, tables and the page loop over the kinds.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from medexam.frozen_model import FrozenModel
from medexam.predictions.core import CorePrediction
from medexam.questions import Gold
from medexam.tables import Captioned

F = TypeVar("F", bound="Figures")
P = TypeVar("P", bound=CorePrediction)


class Figures(FrozenModel, defer_build=True):
    """What `metrics.json` holds of a kind. Shares, probabilities and accuracies are fractions of 1."""


def _nothing(*_: object) -> Any:
    return {}


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[P, F]):
    """One kind of evidence; what it leaves out, it has not."""

    figures: str = ""
    """The keys of its figures in `metrics.json`, joined by points."""
    measure: Callable[[Sequence[tuple[P, Gold]]], F | None] = lambda _: None
    """Makes them of the predictions that did not fail, each with its gold; None if none of them holds the evidence."""
    tables: Callable[[F, Collection[str]], Iterable[Captioned]] = _nothing
    """What a report shows of them, each table with its caption; the names are those of all figures of the run."""
    headline: Callable[[F], Iterable[tuple[str, str]]] = _nothing
    """Rows for a report's headline: what it is, and the value."""
    values: Callable[[F], Mapping[str, float | None]] = _nothing
    """What MLflow keeps of them, by name; None is left out."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of `predictions.parquet` that hold the evidence, with Arrow's types; in brackets: a list of them."""
    cells: Callable[[P, Any], Mapping[str, Any]] = _nothing
    """What stands for one answer to an item in those of them that are not the field of their name."""
    page: Callable[[P], Mapping[str, Any]] = _nothing
    """What the page shows of one answer, JSON-ready; a value of None is left out."""

    def of(self, metrics: object) -> F | None:
        """Return the figures that a run's metrics hold; None if they hold none."""
        group, _, name = self.figures.rpartition(".")
        holder = getattr(metrics, group, None) if group else metrics
        figures: F | None = getattr(holder, name, None) if name else None
        return figures


def end_values(name: str, value: float, interval: tuple[float, float] | None) -> dict[str, float | None]:
    """Name a value and the ends of its interval, as MLflow keeps them."""
    low, high = interval or (None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}
