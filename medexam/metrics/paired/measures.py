"""Paired statistics of runs whose questions are answered in words: means over the same tasks, side by side.

Pure functions over the scores of tasks. Variants of one question are not independent of each other, so the interval
resamples whole questions, and the test exchanges the two runs' scores of whole questions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from medexam.metrics.intervals import RESAMPLES, SEED
from medexam.metrics.paired.pairs import adjust_holm, judge
from medexam.metrics.paired.results import Difference, PairedMeasure
from medexam.metrics.tasks import cluster_scores, question_of, resample_clusters, select_scores

Scores = Mapping[str, float]
"""Task -> its score."""
NO_DIFFERENCE = 1e-6
"""Less than this is none: a sentence encoder gives the same text slightly other vectors beside other texts."""
_BATCH = 2_000_000
"""Signs that are drawn at once."""


def compare_measures(
    baseline: Mapping[str, Scores],
    others: Sequence[Mapping[str, Scores]],
    clusters: Callable[[Scores], Callable[[str], str]] = lambda _: question_of,
) -> list[dict[str, PairedMeasure]]:
    """Each of `others` beside `baseline`, by measure, in the baseline's order; each maps measures to scores of tasks.

    A measure is compared on the tasks that every run has a score for, and left out if there is none. One family of
    tests over all pairs and measures. `clusters` tells of scores what a task is resampled with for their interval.
    """
    runs = (baseline, *others)
    shared = {name: [run[name] for run in runs] for name in baseline if all(name in run for run in others)}
    return _compare_all({name: _on(_common(scores), scores) for name, scores in shared.items()}, len(others), clusters)


def compare_groups(
    baseline: Scores, others: Sequence[Scores], groups: Mapping[str, Iterable[str]]
) -> list[dict[str, PairedMeasure]]:
    """Each of `others` beside `baseline` in one measure, by group of tasks; `groups` maps names to keys of tasks.

    A group without a task that every run has a score for is left out. One family of tests over all pairs and groups.
    """
    runs = (baseline, *others)
    scored = set(_common(runs))
    members = {name: [key for key in keys if key in scored] for name, keys in groups.items()}
    return _compare_all({name: _on(keys, runs) for name, keys in members.items()}, len(others), lambda _: question_of)


def sign_flip_p(differences: Sequence[float]) -> float:
    """The two-sided paired permutation test of whole questions; 1 where fewer than two differ.

    `differences` holds for each question the sum of its tasks' differences. Under the null each is as likely to have
    the other sign. Exact where 13 or fewer questions differ, else from 9,999 draws with a fixed seed, the observed one
    added. Those that do not differ change nothing and are left out.
    """
    found = np.array([each for each in differences if abs(each) >= NO_DIFFERENCE], dtype=float)
    if len(found) < 2 or abs(found.sum()) < NO_DIFFERENCE:
        return 1.0
    exact = 2 ** len(found) <= RESAMPLES
    sums = np.concatenate([signs @ found for signs in (_all_signs if exact else _draw_signs)(len(found))])
    observed, added = found.sum(), 0 if exact else 1
    rounding = 100 * np.finfo(float).eps * abs(observed)
    fewer = min(int((sums <= observed + rounding).sum()), int((sums >= observed - rounding).sum()))
    return min(1.0, 2 * (fewer + added) / (len(sums) + added))


def _all_signs(n: int) -> Iterator[NDArray[np.int64]]:
    """Each way to give `n` numbers a sign, a row each."""
    yield 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)


def _draw_signs(n: int) -> Iterator[NDArray[np.int64]]:
    """Signs of `n` numbers, a row a resample, in batches; the same as `scipy.stats.permutation_test` draws."""
    rows = min(RESAMPLES, max(1, _BATCH // n))
    both, rng = np.broadcast_to([1, -1], (rows, n, 2)), np.random.default_rng(SEED)
    for drawn in range(0, RESAMPLES, rows):
        yield rng.permuted(both, axis=-1)[: RESAMPLES - drawn, :, 0]


def _compare_all(
    named: Mapping[str, Sequence[Scores]], pairs: int, clusters: Callable[[Scores], Callable[[str], str]]
) -> list[dict[str, PairedMeasure]]:
    """`named` holds the scores of every run, the baseline first, on the same tasks; its p-values are adjusted together.

    What has no task is left out.
    """
    family = [(name, at) for at in range(1, pairs + 1) for name, runs in named.items() if runs[0]]
    differences = [_subtract(named[name][0], named[name][at]) for name, at in family]
    p_values = [sign_flip_p([sum(cluster) for cluster in cluster_scores(each, question_of)]) for each in differences]
    found: list[dict[str, PairedMeasure]] = [{} for _ in range(pairs)]
    for (name, at), p, p_adjusted in zip(family, p_values, adjust_holm(p_values), strict=True):
        found[at - 1][name] = _measure(named[name][0], named[name][at], p, p_adjusted, clusters(named[name][0]))
    return found


def _measure(
    before: Scores, after: Scores, p: float, p_adjusted: float, cluster_of: Callable[[str], str]
) -> PairedMeasure:
    clusters = cluster_scores(_subtract(before, after), cluster_of)
    baseline, other = sum(before.values()) / len(before), sum(after.values()) / len(after)
    interval, over = resample_clusters(clusters)
    difference = Difference(value=other - baseline, interval=interval, resampled=over)
    return PairedMeasure(
        n=len(before),
        questions=len({question_of(key) for key in before}),
        baseline=baseline,
        other=other,
        difference=difference,
        p=p,
        p_adjusted=p_adjusted,
        verdict=judge(difference, p_adjusted),
    )


def _subtract(before: Scores, after: Scores) -> dict[str, float]:
    return {key: after[key] - score for key, score in before.items()}


def _common(runs: Sequence[Scores]) -> list[str]:
    """The tasks that every run has a score for, in the first one's order."""
    return [key for key in runs[0] if all(key in run for run in runs[1:])]


def _on(keys: Sequence[str], runs: Sequence[Scores]) -> list[Scores]:
    return [select_scores(run, keys) for run in runs]
