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
    """Compare each of `others` with `baseline` by measure, in the baseline's order; each maps measures to task scores.

    A measure is compared on the tasks that every run has a score for, and left out if there is none. One family of
    tests over all pairs and measures. `clusters` tells of scores what a task is resampled with for their interval.
    """
    runs = (baseline, *others)
    shared = {name: [run[name] for run in runs] for name in baseline if all(name in run for run in others)}
    return _compare_all({name: _on(_common(scores), scores) for name, scores in shared.items()}, len(others), clusters)


def compare_groups(
    baseline: Scores, others: Sequence[Scores], groups: Mapping[str, Iterable[str]]
) -> list[dict[str, PairedMeasure]]:
    """Compare each of `others` with `baseline` in one measure, by group of tasks; `groups` maps names to keys of tasks.

    A group without a task that every run has a score for is left out. One family of tests over all pairs and groups.
    """
    runs = (baseline, *others)
    scored = set(_common(runs))
    members = {name: [key for key in keys if key in scored] for name, keys in groups.items()}
    return _compare_all({name: _on(keys, runs) for name, keys in members.items()}, len(others), lambda _: question_of)


def sign_flip_p(differences: Sequence[float]) -> float:
    """Compute the p-value of the two-sided paired permutation test of whole questions; 1 where fewer than two differ.

    `differences` holds for each question the sum of its tasks' differences. Under the null each is as likely to have
    the other sign. Exact where 13 or fewer questions differ, else from 9,999 draws with a fixed seed, the observed one
    added. Those that do not differ change nothing and are left out.
    """
    changes = np.array([each for each in differences if abs(each) >= NO_DIFFERENCE], dtype=float)
    if len(changes) < 2 or abs(changes.sum()) < NO_DIFFERENCE:
        return 1.0
    exact = 2 ** len(changes) <= RESAMPLES
    sums = np.concatenate([signs @ changes for signs in (_all_signs if exact else _draw_signs)(len(changes))])
    observed, extra_draws = changes.sum(), 0 if exact else 1
    rounding = 100 * np.finfo(float).eps * abs(observed)
    fewer = min(int((sums <= observed + rounding).sum()), int((sums >= observed - rounding).sum()))
    return min(1.0, 2 * (fewer + extra_draws) / (len(sums) + extra_draws))


def _all_signs(n: int) -> Iterator[NDArray[np.int64]]:
    """Yield each way to give `n` numbers a sign, a row each."""
    yield 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)


def _draw_signs(n: int) -> Iterator[NDArray[np.int64]]:
    """Yield signs of `n` numbers, a row a resample, in batches; the same as `scipy.stats.permutation_test` draws."""
    rows = min(RESAMPLES, max(1, _BATCH // n))
    sign_pairs, rng = np.broadcast_to([1, -1], (rows, n, 2)), np.random.default_rng(SEED)
    for begin in range(0, RESAMPLES, rows):
        yield rng.permuted(sign_pairs, axis=-1)[: RESAMPLES - begin, :, 0]


def _compare_all(
    scores_by_name: Mapping[str, Sequence[Scores]], pairs: int, clusters: Callable[[Scores], Callable[[str], str]]
) -> list[dict[str, PairedMeasure]]:
    """Compare all runs by name of measure or group, and adjust the p-values together. `scores_by_name` holds the scores
    of every run, the baseline first, on the same tasks.

    What has no task is left out.
    """
    family = [(name, run) for run in range(1, pairs + 1) for name, runs in scores_by_name.items() if runs[0]]
    differences = [_subtract(scores_by_name[name][0], scores_by_name[name][run]) for name, run in family]
    p_values = [sign_flip_p([sum(cluster) for cluster in cluster_scores(each, question_of)]) for each in differences]
    measures: list[dict[str, PairedMeasure]] = [{} for _ in range(pairs)]
    for (name, run), p, p_adjusted in zip(family, p_values, adjust_holm(p_values), strict=True):
        measures[run - 1][name] = _measure(
            scores_by_name[name][0], scores_by_name[name][run], p, p_adjusted, clusters(scores_by_name[name][0])
        )
    return measures


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
    """List the tasks that every run has a score for, in the first one's order."""
    return [key for key in runs[0] if all(key in run for run in runs[1:])]


def _on(keys: Sequence[str], runs: Sequence[Scores]) -> list[Scores]:
    return [select_scores(run, keys) for run in runs]
