"""Runs on the same items beside the first of them, whatever was asked, and what tells them apart.

Items of one exam share their authors and their year, and variants of one question their text, so intervals resample
whole clusters if there are enough; the tests look at whole questions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from medexam.measures.intervals import Floats, resample
from medexam.measures.paired.results import Difference, Flips, PairedMeasure
from medexam.measures.paired.significance import adjust_all, kappa, mcnemar_p, sign_flip_p
from medexam.measures.results import Unit
from medexam.measures.tasks import cluster_scores, question_of

NO_ANSWER = -(2**40)
"""Stands for a missing answer; no printed number is so small."""
POINTS = "points"
"""The measure that is a mean over clusters, not over items."""
Measured = dict[str, PairedMeasure]


@dataclass(frozen=True)
class Sheet:
    """The scores of several runs on the same items: column j is item j in all that follows, and row i run i."""

    keys: Sequence[str]
    clusters: Sequence[str]
    """What each item is resampled with."""
    scores: Mapping[str, Floats]
    """Measure -> scores, `nan` where an item has none; runs are known by the first."""
    answers: NDArray[np.int64] | None = None
    """The printed number of each chosen option, or `NO_ANSWER`; None unless answers are right or wrong."""
    unread: NDArray[np.bool_] | None = None
    """Where a reply came that nobody could read; None: nowhere."""
    facets: Mapping[str, Sequence[str | None]] | None = None
    """Facet -> the group of each item; None: it is in none."""
    units: Mapping[str, Unit] | None = None
    """Those of measures that are no shares."""
    clusters_tell: bool = True
    """Whether items that are all of one cluster are resampled within it; else each is resampled on its own."""

    def only(self, columns: Any) -> Self:
        """Return the same of some items, by place or mask."""
        places = np.arange(len(self.keys))[columns]
        return replace(
            self,
            keys=[self.keys[place] for place in places],
            clusters=[self.clusters[place] for place in places],
            scores={name: scores[:, places] for name, scores in self.scores.items()},
            answers=None if self.answers is None else self.answers[:, places],
            unread=None if self.unread is None else self.unread[:, places],
            facets={name: [groups[place] for place in places] for name, groups in (self.facets or {}).items()},
        )

    @property
    def first(self) -> Floats:
        """The scores in the measure that runs are known by."""
        return next(iter(self.scores.values()))

    @property
    def flipped(self) -> NDArray[np.bool_]:
        """Which items some runs have right and others have not."""
        flips: NDArray[np.bool_] = self.first.min(axis=0) != self.first.max(axis=0)
        return flips

    @cached_property
    def cluster_numbers(self) -> NDArray[np.intp]:
        """The number of each item's cluster, from 0, in the order in which they first appear."""
        return number_as_seen(self.clusters)


def number_as_seen(values: Sequence[str]) -> NDArray[np.intp]:
    """Replace equal values by equal numbers, from 0, in the order in which the values first appear."""
    numbers: dict[str, int] = {}
    return np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.intp, len(values))


def compare_all(sheet: Sheet) -> list[Measured]:
    """Compare each further run with the first in each measure; one family of tests over all runs and measures."""
    return adjust_all([compare_pair(sheet, 0, other) for other in range(1, len(sheet.first))])


def compare_groups(sheet: Sheet, facet: str, order: Sequence[str] = ()) -> list[Measured]:
    """Compare each further run with the first by group of a facet, in the first measure.

    Groups stand in the given order, others by name behind them. A group without an item that every run has a score for
    is left out. One family of tests over all runs and groups.
    """
    members: dict[str, list[int]] = {}
    for place, group in enumerate((sheet.facets or {})[facet]):
        if group is not None:
            members.setdefault(group, []).append(place)
    names = [*(name for name in order if name in members), *sorted(members.keys() - set(order))]
    parts = {name: replace(sheet.only(members[name]), facets=None) for name in names}
    families: list[Measured] = []
    for other in range(1, len(sheet.first)):
        compared = {name: compare_pair(part, 0, other) for name, part in parts.items()}
        families.append({name: next(iter(measures.values())) for name, measures in compared.items() if measures})
    return adjust_all(families)


def compare_pair(sheet: Sheet, baseline: int, other: int) -> Measured:
    """Compare one run with another in each measure that some item has a score for in all runs; nothing is adjusted.

    Right and wrong answers, and what follows from them, are resampled together.
    """
    if not sheet.keys:
        return {}
    if sheet.answers is not None:
        return _compare(sheet, list(sheet.scores), baseline, other)
    measures: Measured = {}
    for name, scores in sheet.scores.items():
        scored = ~np.isnan(scores).any(axis=0)
        part = sheet if scored.all() else sheet.only(scored)
        if part.keys:
            measures |= _compare(part, [name], baseline, other)
    return measures


def _compare(sheet: Sheet, names: Sequence[str], baseline: int, other: int) -> Measured:
    before, after = (np.stack([sheet.scores[name][run] for name in names], axis=1) for run in (baseline, other))
    numbers = sheet.cluster_numbers
    count = int(numbers.max()) + 1
    if count == 1 and not sheet.clusters_tell:
        numbers, count = np.arange(len(numbers)), len(numbers)
    per_cluster = [name == POINTS for name in names]
    n = len(sheet.keys)

    def mean(*columns: Any) -> Any:
        *sums, sizes, clusters = columns
        return np.stack(
            [total / (clusters if is_mean else sizes) for total, is_mean in zip(sums, per_cluster, strict=True)]
        )

    differences = mean_differences(after - before, numbers, mean)
    measures = {
        name: PairedMeasure(
            n=n,
            clusters=count,
            baseline=float(before[:, place].sum()) / (count if per_cluster[place] else n),
            other=float(after[:, place].sum()) / (count if per_cluster[place] else n),
            difference=differences[place],
            unit=(sheet.units or {}).get(name, Unit.SHARE),
        )
        for place, name in enumerate(names)
    }
    first = names[0]
    if sheet.answers is None:
        changes = dict(zip(sheet.keys, (after - before)[:, 0].tolist(), strict=True))
        p = sign_flip_p([sum(each) for each in cluster_scores(changes, question_of)])
        return {first: measures[first].model_copy(update={"p": p})}
    flips = _flips(before[:, 0] == 1, after[:, 0] == 1, sheet.answers[baseline], sheet.answers[other])
    p = mcnemar_p(flips.right_to_wrong, flips.wrong_to_right)
    return measures | {first: measures[first].model_copy(update={"p": p, "flips": flips})}


def mean_differences(changes: Floats, clusters: NDArray[np.intp], statistic: Callable[..., Any]) -> list[Difference]:
    """Find the mean of each column of differences, with the intervals of `resample` over clusters, by number."""
    rows = np.column_stack([changes, np.ones(len(changes))])
    count = int(clusters.max()) + 1
    sums: Floats = np.column_stack([np.bincount(clusters, column, count) for column in rows.T])
    values = statistic(*sums.sum(axis=0), count)
    intervals = resample(
        sums, lambda: [changes[clusters == cluster] for cluster in range(count)], statistic, changes.shape[1]
    )
    return [
        Difference(value=float(value), interval=interval, resampled=kind)
        for value, (interval, kind) in zip(values, intervals, strict=True)
    ]


def _flips(
    before: NDArray[np.bool_], after: NDArray[np.bool_], first: NDArray[np.int64], second: NDArray[np.int64]
) -> Flips:
    return Flips(
        right_to_wrong=int((before & ~after).sum()),
        wrong_to_right=int((after & ~before).sum()),
        both_right=int((before & after).sum()),
        both_wrong=int((~before & ~after).sum()),
        same_answer=int((first == second).sum()) / len(first),
        kappa=kappa(first, second),
    )
