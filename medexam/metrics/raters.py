"""How far people agree who mark the same items from 1 to 5; it knows nothing of what they judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

MARKS = 5
"""Marks go from 1 to this."""


@dataclass(frozen=True)
class Agreement:
    """How far two raters agree on one aspect."""

    aspect: str
    raters: tuple[str, str]
    n: int
    """Items that both have marked."""
    same: float | None
    """Share of them with the same mark, from 0 to 1; None without any."""
    kappa: float | None
    """Cohen's kappa with quadratic weights (Cohen 1968, from statsmodels): 1 where all agree, 0 where chance explains
    it. None where both give all items one and the same mark, or fewer than two items are marked by both."""


def agree(aspect: str, marks: Mapping[str, Mapping[str, int]]) -> tuple[Agreement, ...]:
    """The agreement of every two raters on an aspect; `marks` holds the marks from 1 to 5 by rater and item."""
    return tuple(
        _agreement(aspect, pair, both_marked(marks[pair[0]], marks[pair[1]])) for pair in combinations(marks, 2)
    )


def both_marked(one: Mapping[str, int], other: Mapping[str, int]) -> list[tuple[int, int]]:
    """The two marks of each item that both raters have marked, in the order of the first."""
    return [(mark, other[item]) for item, mark in one.items() if item in other]


def _agreement(aspect: str, raters: tuple[str, str], pairs: Sequence[tuple[int, int]]) -> Agreement:
    same = sum(a == b for a, b in pairs) / len(pairs) if pairs else None
    return Agreement(aspect, raters, len(pairs), same, _weighted_kappa(pairs))


def _weighted_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    if len(pairs) < 2 or len({mark for pair in pairs for mark in pair}) < 2:
        return None
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    table = np.zeros((MARKS, MARKS))
    for a, b in pairs:
        table[a - 1, b - 1] += 1
    return float(cohens_kappa(table, wt="quadratic", return_results=False))
