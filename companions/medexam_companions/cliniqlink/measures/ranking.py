"""List answers as rankings: the figures that the released scorer reports beside F1, in the order named.

A malformed answer keeps its ranks here: the options that it names stand where it names them, and a piece that is no
option takes a rank too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

TOP = 5


@dataclass(frozen=True, slots=True)
class RankedList:
    """What an item wants and what an answer named."""

    gold: frozenset[str]
    ranked: tuple[str, ...]
    """In the order named, repetitions included, pieces that are no option among them."""

    @property
    def average_precision(self) -> float:
        """Sum of the precision at each hit, divided by the number of golds; above 1 if a hit is repeated."""
        hits, total = 0, 0.0
        for rank, pick in enumerate(self.ranked, start=1):
            if pick in self.gold:
                hits += 1
                total += hits / rank
        return total / len(self.gold) if self.gold else 0.0

    @property
    def reciprocal_rank(self) -> float:
        """One divided by the rank of the first hit; 0 without one."""
        return next((1 / rank for rank, pick in enumerate(self.ranked, start=1) if pick in self.gold), 0.0)

    @property
    def precision_at_5(self) -> float:
        """Hits among the first five, divided by five always."""
        return sum(pick in self.gold for pick in self.ranked[:TOP]) / TOP


@dataclass(frozen=True, slots=True)
class RankingFigures:
    """Means over several items."""

    mean_average_precision: float
    mean_reciprocal_rank: float
    precision_at_5: float


def ranking_figures(items: Sequence[RankedList]) -> RankingFigures | None:
    """Compute the figures of these items; None without items."""
    if not items:
        return None
    n = len(items)
    return RankingFigures(
        mean_average_precision=sum(item.average_precision for item in items) / n,
        mean_reciprocal_rank=sum(item.reciprocal_rank for item in items) / n,
        precision_at_5=sum(item.precision_at_5 for item in items) / n,
    )
