"""How far people who mark the same answers agree with each other, and automatic measures with them.

Kappas of raters, and rank correlations with intervals. A shared task of 2025 had physicians audit a sample of open
answers in this way. Pure functions over items and marks; they know neither sheets nor run folders.
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import LEVEL
from medexam.measures import RESAMPLES, SEED, Interval, cohens_kappa
from medexam_companions.audit.items import AuditItem

FEWEST = 3
"""Of fewer items no correlation is given."""
USABLE = 0.9
"""Share of the resamples in which both sides must vary, so that an interval is given."""
_AT_ONCE = 1_000
"""Resamples that are held in memory together."""
V = TypeVar("V", bound=Hashable)
Matrix = NDArray[np.float64]


def agree(marks: Mapping[str, Mapping[str, V]], values: Sequence[V], *, ordered: bool = False) -> list[dict[str, Any]]:
    """Measure the agreement of every two raters; `marks` by rater and item, each one of `values`.

    `n` counts the items that both have marked, `same` is the share of them with the same mark, and `kappa` Cohen's: 1
    where all agree, 0 if chance explains it; with quadratic weights (Cohen 1968) if the marks are ordered. It is None
    if all marks are one and the same, or fewer than two items are marked by both.
    """
    agreements = []
    for raters in combinations(marks, 2):
        first, second = (marks[rater] for rater in raters)
        pairs = [(mark, second[item]) for item, mark in first.items() if item in second]
        same = sum(one == other for one, other in pairs) / len(pairs) if pairs else None
        table = np.zeros((len(values), len(values)))
        for one, other in pairs:
            table[values.index(one), values.index(other)] += 1
        is_vague = len(pairs) < 2 or len({mark for pair in pairs for mark in pair}) < 2
        kappa = None if is_vague else cohens_kappa(table, quadratic=ordered)
        agreements.append({"raters": raters, "n": len(pairs), "same": same, "kappa": kappa})
    return agreements


def correlate(first: Sequence[float], second: Sequence[float], questions: Sequence[str]) -> dict[str, Any]:
    """Find how far two orders of the same `n` items agree; element `i` of all three belongs to one item.

    Spearman's rho (`spearman`) and Kendall's tau-b, which allows for ties (`kendall`), from -1 to 1; None with fewer
    than 3 items, or where one side is constant. The 95 % intervals (`spearman_interval`, `kendall_interval`) are
    percentiles of 9,999 resamples of the questions, all answers to a question being drawn together. They are None if
    there are fewer than two questions, or where in a tenth of the resamples one side is constant.
    """
    names = ("spearman", "kendall")
    if len(first) < FEWEST or len(set(first)) < 2 or len(set(second)) < 2:
        values: Sequence[float | None] = (None, None)
        intervals: Sequence[Interval | None] = (None, None)
    else:
        orders = _order(first), _order(second)
        values = [float(value[0]) for value in _coefficients(np.ones((1, len(first))), *orders)]
        intervals = _intervals(*orders, questions)
    ends = zip((f"{name}_interval" for name in names), intervals, strict=True)
    return {"n": len(first), **dict(zip(names, values, strict=True)), **dict(ends)}


def measure_agreement(items: Sequence[AuditItem], marks: Sequence[float]) -> list[dict[str, Any]]:
    """Compare every measure that an item has with the people's mark; `marks[i]` is the mark of `items[i]`.

    Each has its correlation `overall`, `by_group` and `by_run`. Measures, groups and runs stand in the order of their
    first item.
    """

    def compare(measure: str, part: str = "", name: str = "") -> dict[str, Any]:
        pairs = [
            (item, mark)
            for item, mark in zip(items, marks, strict=True)
            if measure in item.scores and (not part or getattr(item, part) == name)
        ]
        scores = [item.scores[measure] for item, _ in pairs]
        return correlate([mark for _, mark in pairs], scores, [item.key for item, _ in pairs])

    names = {part: list(dict.fromkeys(getattr(item, part) for item in items)) for part in ("group", "run")}
    return [
        {
            "measure": measure,
            "overall": compare(measure),
            **{f"by_{part}": {name: compare(measure, part, name) for name in names[part]} for part in names},
        }
        for measure in dict.fromkeys(measure for item in items for measure in item.scores)
    ]


def _order(values: Sequence[float]) -> Matrix:
    """Compare items: 1 in row `i`, column `j` where item `i` is greater, -1 where it is smaller, 0 if they tie."""
    row = np.asarray(values, dtype=np.float64)
    return np.sign(row[:, None] - row[None, :])


def _intervals(first: Matrix, second: Matrix, questions: Sequence[str]) -> tuple[Interval | None, Interval | None]:
    """Find the intervals of rho and tau-b over resamples of the questions.

    A resample is the number of times that each item is drawn, so that products of matrices give both coefficients of a
    thousand resamples at once, exactly: an item's rank is, but for a constant and a factor, the sum of its row.
    """
    places = {question: place for place, question in enumerate(dict.fromkeys(questions))}
    if len(places) < 2:
        return None, None
    question_of = [places[question] for question in questions]
    generator, chances = np.random.default_rng(SEED), np.full(len(places), 1 / len(places))
    resamples = []
    for begin in range(0, RESAMPLES, _AT_ONCE):
        draws = generator.multinomial(len(places), chances, size=min(_AT_ONCE, RESAMPLES - begin))
        resamples.append(_coefficients(draws[:, question_of].astype(np.float64), first, second))
    rhos, taus = (np.concatenate(side) for side in zip(*resamples, strict=True))
    return _percentiles(rhos), _percentiles(taus)


def _coefficients(times: Matrix, first: Matrix, second: Matrix) -> tuple[Matrix, Matrix]:
    """Compute rho and tau-b by resample; NaN where a side is constant. `times[r, i]`: how often `r` holds item `i`."""
    ranks, other_ranks = times @ first, times @ second

    def pairs(kind: Matrix) -> Matrix:
        return np.asarray(((times @ kind) * times).sum(axis=1))

    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = (times * ranks * other_ranks).sum(axis=1)
        rho = covariance / np.sqrt((times * ranks**2).sum(axis=1) * (times * other_ranks**2).sum(axis=1))
        tau = pairs(first * second) / np.sqrt(pairs(np.abs(first)) * pairs(np.abs(second)))
    return rho, tau


def _percentiles(coefficients: Matrix) -> Interval | None:
    usable = coefficients[np.isfinite(coefficients)]
    if len(usable) < USABLE * len(coefficients):
        return None
    low, high = np.quantile(usable, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(np.clip(low, -1, 1)), float(np.clip(high, -1, 1))
