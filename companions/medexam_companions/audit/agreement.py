"""How far people who mark the same answers agree with each other, and automatic measures with them.

Kappas of raters, and rank correlations with intervals. A shared task of 2025 had physicians audit a sample of open
answers in this way. Pure functions over items and marks; they know neither sheets nor run folders.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import LEVEL
from medexam.metrics import RESAMPLES, SEED, Interval, cohens_kappa

MARKS = 5
"""Marks go from 1 to this."""
FEWEST = 3
"""Of fewer items no correlation is given."""
USABLE = 0.9
"""Share of the resamples in which both sides must vary, so that an interval is given."""
_AT_ONCE = 1_000
"""Resamples that are held in memory together."""


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
    """Cohen's kappa with quadratic weights (Cohen 1968): 1 where all agree, 0 if chance explains
    it. None if both give all items one and the same mark, or fewer than two items are marked by both."""


def agree(aspect: str, marks: Mapping[str, Mapping[str, int]]) -> tuple[Agreement, ...]:
    """Measure the agreement of every two raters on an aspect; `marks` holds the marks from 1 to 5 by rater and item."""
    return tuple(
        _agreement(aspect, pair, both_marked(marks[pair[0]], marks[pair[1]])) for pair in combinations(marks, 2)
    )


def both_marked(first: Mapping[str, int], second: Mapping[str, int]) -> list[tuple[int, int]]:
    """Pair the two marks of each item that both raters have marked, in the order of the first."""
    return [(mark, second[item]) for item, mark in first.items() if item in second]


def _agreement(aspect: str, raters: tuple[str, str], pairs: Sequence[tuple[int, int]]) -> Agreement:
    same = sum(a == b for a, b in pairs) / len(pairs) if pairs else None
    return Agreement(aspect, raters, len(pairs), same, _weighted_kappa(pairs))


def _weighted_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    if len(pairs) < 2 or len({mark for pair in pairs for mark in pair}) < 2:
        return None
    table = np.zeros((MARKS, MARKS))
    for a, b in pairs:
        table[a - 1, b - 1] += 1
    return cohens_kappa(table, quadratic=True)


class ScoredItem(Protocol):
    """What the statistics need of an `AuditItem`."""

    @property
    def key(self) -> str:
        """The question's key."""

    @property
    def run(self) -> str:
        """The run's id."""

    @property
    def group(self) -> str:
        """What the question belongs to."""

    @property
    def scores(self) -> Mapping[str, float]:
        """Automatic measure -> score of this answer."""


@dataclass(frozen=True)
class RankCorrelation:
    """How far two orders of the same items agree, from -1 to 1. None with fewer than 3 items, or where one side is
    constant.

    The 95 % intervals are percentiles of 9,999 resamples of the questions, all answers to a question being drawn
    together. They are None if there are fewer than two questions, or where in a tenth of the resamples one side is
    constant.
    """

    n: int
    """Items with a value on both sides."""
    spearman: float | None
    """Spearman's rho."""
    spearman_interval: Interval | None
    kendall: float | None
    """Kendall's tau-b, which allows for ties."""
    kendall_interval: Interval | None


@dataclass(frozen=True)
class RaterPair:
    """Two raters on one aspect."""

    agreement: Agreement
    correlation: RankCorrelation


@dataclass(frozen=True)
class MeasureAgreement:
    """One automatic measure against the people's mark."""

    measure: str
    overall: RankCorrelation
    by_group: Mapping[str, RankCorrelation]
    by_run: Mapping[str, RankCorrelation]


def correlate(first: Sequence[float], second: Sequence[float], questions: Sequence[str]) -> RankCorrelation:
    """Find the rank correlations of two sequences of finite numbers; element `i` of all three belongs to one item.

    `questions` says which items belong together and are drawn together.
    """
    n = len(first)
    if n < FEWEST or len(set(first)) < 2 or len(set(second)) < 2:
        return RankCorrelation(n, None, None, None, None)
    orders = _order(first), _order(second)
    (rho,), (tau,) = _coefficients(np.ones((1, n)), *orders)
    intervals = _intervals(*orders, questions)
    return RankCorrelation(n, float(rho), intervals[0], float(tau), intervals[1])


def compare_raters(
    aspect: str, marks: Mapping[str, Mapping[str, int]], questions: Mapping[str, str]
) -> tuple[RaterPair, ...]:
    """Compare every two raters on an aspect; `marks` by rater and item, `questions` maps an item to its question."""
    rater_pairs = []
    for agreement in agree(aspect, marks):
        first, second = (marks[rater] for rater in agreement.raters)
        pairs = both_marked(first, second)
        shared = [questions[item] for item in first if item in second]
        rater_pairs.append(RaterPair(agreement, correlate([a for a, _ in pairs], [b for _, b in pairs], shared)))
    return tuple(rater_pairs)


def mean_marks(marks: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Average the raters' marks of each item that at least one has marked; `marks` by rater and item."""
    marks_by_item: dict[str, list[int]] = {}
    for rater_marks in marks.values():
        for item, mark in rater_marks.items():
            marks_by_item.setdefault(item, []).append(mark)
    return {item: sum(item_marks) / len(item_marks) for item, item_marks in marks_by_item.items()}


def measure_agreement(items: Sequence[ScoredItem], marks: Sequence[float]) -> tuple[MeasureAgreement, ...]:
    """Compare every measure that an item has with the people's mark; `marks[i]` is the mark of `items[i]`.

    Measures, groups and runs stand in the order of their first item.
    """
    measures = dict.fromkeys(measure for item in items for measure in item.scores)
    item_marks = list(zip(items, marks, strict=True))
    return tuple(
        MeasureAgreement(
            measure,
            _correlate_measure(measure, item_marks),
            _by(measure, item_marks, lambda item: item.group),
            _by(measure, item_marks, lambda item: item.run),
        )
        for measure in measures
    )


def _by(
    measure: str, item_marks: Sequence[tuple[ScoredItem, float]], part_of: Callable[[ScoredItem], str]
) -> dict[str, RankCorrelation]:
    parts: dict[str, list[tuple[ScoredItem, float]]] = {}
    for item, mark in item_marks:
        parts.setdefault(part_of(item), []).append((item, mark))
    return {part: _correlate_measure(measure, part_marks) for part, part_marks in parts.items()}


def _correlate_measure(measure: str, item_marks: Sequence[tuple[ScoredItem, float]]) -> RankCorrelation:
    scored = [(item, mark) for item, mark in item_marks if measure in item.scores]
    scores = [item.scores[measure] for item, _ in scored]
    return correlate([mark for _, mark in scored], scores, [item.key for item, _ in scored])


def _order(values: Sequence[float]) -> NDArray[np.float64]:
    """Compare items: 1 in row `i`, column `j` where item `i` is greater, -1 where it is smaller, 0 if they tie."""
    row = np.asarray(values, dtype=np.float64)
    return np.sign(row[:, None] - row[None, :])


def _intervals(
    first: NDArray[np.float64], second: NDArray[np.float64], questions: Sequence[str]
) -> tuple[Interval | None, Interval | None]:
    """Find the intervals of rho and tau-b over resamples of the questions.

    A resample is the number of times that each item is drawn, so that products of matrices give both coefficients of a
    thousand resamples at once, exactly: an item's rank is, but for a constant and a factor, the sum of its row.
    """
    places = {question: place for place, question in enumerate(dict.fromkeys(questions))}
    if len(places) < 2:
        return None, None
    question_of = np.array([places[question] for question in questions])
    generator = np.random.default_rng(SEED)
    chances = np.full(len(places), 1 / len(places))
    rhos, taus = [], []
    for begin in range(0, RESAMPLES, _AT_ONCE):
        draws = generator.multinomial(len(places), chances, size=min(_AT_ONCE, RESAMPLES - begin))
        rho, tau = _coefficients(draws[:, question_of].astype(np.float64), first, second)
        rhos.append(rho)
        taus.append(tau)
    return _percentiles(np.concatenate(rhos)), _percentiles(np.concatenate(taus))


def _coefficients(
    times: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute rho and tau-b by resample; NaN where a side is constant. `times[r, i]`: how often `r` holds item `i`."""
    ranks, other_ranks = times @ first, times @ second

    def pairs(kind: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(((times @ kind) * times).sum(axis=1))

    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = (times * ranks * other_ranks).sum(axis=1)
        rho = covariance / np.sqrt((times * ranks**2).sum(axis=1) * (times * other_ranks**2).sum(axis=1))
        tau = pairs(first * second) / np.sqrt(pairs(np.abs(first)) * pairs(np.abs(second)))
    return rho, tau


def _percentiles(coefficients: NDArray[np.float64]) -> Interval | None:
    usable = coefficients[np.isfinite(coefficients)]
    if len(usable) < USABLE * len(coefficients):
        return None
    low, high = np.quantile(usable, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(np.clip(low, -1, 1)), float(np.clip(high, -1, 1))
