"""What a comparison of runs on the same exams holds of each pair, and of each question that flips. Only data."""

from collections.abc import Mapping
from dataclasses import dataclass

from medexam.metrics.paired.results import Paired, Verdict


@dataclass(frozen=True)
class Group:
    """The questions of one discipline or year, beside the baseline."""

    paired: Paired
    p_adjusted: float
    """McNemar's p after Holm, over all groups of the breakdown and all pairs."""


@dataclass(frozen=True)
class Pair:
    """One run beside the baseline."""

    paired: Paired
    p_adjusted: float
    """McNemar's p after Holm, over all pairs; the same as before where there is one pair."""
    verdict: Verdict
    by_discipline: Mapping[str, Group]
    by_year: Mapping[str, Group]


@dataclass(frozen=True)
class Flipped:
    """A question that some runs have right and others have not."""

    question: str
    """Its key."""
    gold: int
    answers: tuple[int | None, ...]
    """The printed number that each run chose, in their order; None where it chose none."""
