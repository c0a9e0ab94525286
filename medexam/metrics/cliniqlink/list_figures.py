"""Figures of list answers: by item and by label.

Here are gold sets and picks; how they were read is no matter.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picks:
    """What an item wants and what an answer named."""

    gold: frozenset[str]
    picks: tuple[str, ...]
    """Distinct, in the order named."""

    @property
    def hits(self) -> int:
        """How many picks are gold."""
        return sum(pick in self.gold for pick in self.picks)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 where both are."""
        return f1(self.hits, len(self.picks) - self.hits, len(self.gold) - self.hits)


@dataclass(frozen=True, slots=True)
class ListFigures:
    """Figures over several items; fractions of 1."""

    label_macro_f1: float
    """Mean of the F1 of every distinct label: the released scorer's macro F1. Equal labels of different items are
    one. Where each label occurs in one item it is hits divided by the labels that are gold or picked."""
    item_macro_f1: float
    """Mean of the items' F1: the paper's macro F1."""
    micro_f1: float
    """F1 of all labels pooled."""


def list_figures(items: Sequence[Picks]) -> ListFigures | None:
    """The figures of these items; None without items."""
    if not items:
        return None
    return ListFigures(
        label_macro_f1=label_macro_f1(items),
        item_macro_f1=_mean([item.f1 for item in items]),
        micro_f1=micro_f1(items),
    )


def label_macro_f1(items: Sequence[Picks]) -> float:
    """Mean F1 over the labels that are gold or picked anywhere; 0 where there is none."""
    right: Counter[str] = Counter()
    extra: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for item in items:
        picked = frozenset(item.picks)
        right.update(picked & item.gold)
        extra.update(picked - item.gold)
        missed.update(item.gold - picked)
    labels = right.keys() | extra.keys() | missed.keys()
    return _mean([f1(right[label], extra[label], missed[label]) for label in sorted(labels)])


def micro_f1(items: Sequence[Picks]) -> float:
    """F1 of the pooled labels; 0 where there is none."""
    hits = sum(item.hits for item in items)
    return f1(hits, sum(len(item.picks) for item in items) - hits, sum(len(item.gold) for item in items) - hits)


def f1(right: int, extra: int, missed: int) -> float:
    """`2 right / (2 right + extra + missed)`; 0 where all are 0."""
    whole = 2 * right + extra + missed
    return 2 * right / whole if whole else 0.0


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values) if values else 0.0
