"""95 % intervals of means: bootstraps over clusters, or over the items within them.

Questions of one exam share their authors and their year, so the scores' bootstrap draws whole exams. Fewer than five
clusters cannot say how clusters differ: then it draws items within each. It knows nothing of questions or predictions.
"""

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import LEVEL
from medexam.measures.results import Interval, Resampling

RESAMPLES = 9_999
SEED = 20_130_101
"""Fixed, so that scoring a stored run again gives the same interval."""
MANY = 5_000
"""Clusters from which on resamples are not drawn one cluster after the other."""
_FEW = 50
"""Clusters up to which it is counted once how often each is drawn: 4 MB, for all scores of a comparison."""
_DRAWN_AT_ONCE = 10_000_000
"""Clusters of resamples in memory at a time."""
_DISTINCT = 1_000
"""Different clusters whose number of times is drawn instead of single clusters."""
FEWEST = 5
"""Clusters that a bootstrap over clusters needs, and items that each cluster needs for one within clusters."""

Floats = NDArray[np.float64]
Found = tuple[Interval | None, Resampling]
"""An interval and what it resamples, or None and why."""


def number_as_seen(values: Sequence[str]) -> NDArray[np.intp]:
    """Replace equal values by equal numbers, from 0, in the order in which the values first appear."""
    numbers: dict[str, int] = {}
    return np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.intp, len(values))


def resample(scores: Floats, clusters: NDArray[np.intp], per_cluster: Sequence[bool] = (False,)) -> list[Found]:
    """Find a 95 % percentile interval of the mean of each column of `scores`, from 9,999 resamples, seed fixed.

    Row i is item i, of cluster `clusters[i]`, numbered from 0 without gaps. The mean is over items, or over clusters
    where `per_cluster` says so. With five clusters or more, whole clusters are drawn with replacement; with fewer, each
    cluster's own items are. There is no interval if one has fewer than five, and none without width.
    """
    count = int(clusters.max()) + 1 if len(clusters) else 0
    members = partial(np.bincount, clusters, minlength=count)
    if count >= FEWEST:
        totals, kind = _draw_clusters(np.column_stack([*map(members, scores.T), members()])), Resampling.CLUSTERS
    elif not count or members().min() < FEWEST:
        return [(None, Resampling.TOO_FEW)] * len(per_cluster)
    else:
        rng = np.random.default_rng(SEED)
        draws = [_draw_times(scores[clusters == cluster], rng) for cluster in range(count)]
        sizes = np.full((RESAMPLES, 1), float(len(scores)))
        totals, kind = np.hstack([np.sum(draws, axis=0), sizes]), Resampling.WITHIN_EXAMS
    ordered = np.sort(
        [sums / (count if is_mean else totals[:, -1]) for sums, is_mean in zip(totals.T, per_cluster, strict=False)]
    )
    ends, tail = [], (1 - LEVEL) / 2
    # In the arithmetic of `scipy.stats.bootstrap`, to the last digit: numpy's percentiles round otherwise.
    for share in (tail, 1 - tail):
        above, part = divmod(share * RESAMPLES + (1 - share), 1)
        ends.append((1 - part) * ordered[:, int(above) - 1] + part * ordered[:, int(above)])
    return [
        (None, Resampling.ALIKE) if np.isclose(low, high) else ((float(low), float(high)), kind)
        for low, high in zip(*ends, strict=True)
    ]


def _draw_clusters(sums: Floats) -> Floats:
    """Sum over each resample, `[RESAMPLES, columns]`. Of many clusters few may differ: then their times are drawn.

    Of others the draws are those of `scipy.stats.bootstrap` with the same seed, which takes longer to import.
    """
    if len(sums) <= _FEW:
        # Not by `@`, whose threads take longer to wake than so few sums do.
        totals: Floats = np.einsum("dc,cs->ds", _count_draws(len(sums)), np.asfortranarray(sums))
        return totals
    rng = np.random.default_rng(SEED)
    if len(sums) > MANY and len(_count_distinct(sums)[0]) <= _DISTINCT:
        return _draw_times(sums, rng)
    batch = max(1, _DRAWN_AT_ONCE // len(sums))
    sizes = [min(batch, RESAMPLES - start) for start in range(0, RESAMPLES, batch)]
    # One column at a time: together they would not fit beside each other.
    batches = (rng.integers(0, len(sums), (size, len(sums))) for size in sizes)
    return np.concatenate([np.column_stack([column[indices].sum(axis=1) for column in sums.T]) for indices in batches])


@lru_cache(4)
def _count_draws(clusters: int) -> Floats:
    """Count how often each cluster is drawn in each resample, `[RESAMPLES, clusters]`."""
    drawn, size = np.random.default_rng(SEED).integers(0, clusters, (RESAMPLES, clusters)), RESAMPLES * clusters
    places = drawn + np.arange(0, size, clusters)[:, None]
    return np.bincount(places.ravel(), minlength=size).reshape(RESAMPLES, clusters).astype(np.float64)


def _draw_times(rows: Floats, rng: np.random.Generator) -> Floats:
    """Sum over each resample of as many rows, with replacement: that is to draw how often each distinct one occurs."""
    distinct, counts = _count_distinct(rows)
    totals: Floats = rng.multinomial(len(rows), counts / len(rows), size=RESAMPLES) @ distinct
    return totals


def _count_distinct(rows: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Count how often each different row occurs; rows in ascending order of the first column and then of the next."""
    # `np.unique` compares whole rows one by one, which takes ten times as long.
    ordered = rows[np.lexsort(rows.T[::-1])]
    begins = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))
    return ordered[begins], np.diff(begins, append=len(ordered))
