"""Means of values of single questions, and differences of means between two sets of exams, with intervals over exams.

A value may be whether an answer is right, or a run's minus another's on the same question: then a difference of means
is a difference in differences. It knows nothing of runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from medexam.items import Gold
from medexam.metrics.intervals import FEWEST, LEVEL, RESAMPLES, SEED, Floats, resample
from medexam.metrics.paired.results import Difference
from medexam.metrics.results import Resampling
from medexam.questions import Question


def mean_value(values: Floats, clusters: Sequence[str]) -> Difference:
    """The mean over all questions, at least one, with the interval of `resample`; `clusters[i]` is the exam of i."""
    exams = _split(values, clusters)
    sums = np.array([[exam.sum(), len(exam)] for exam in exams])
    ((interval, over),) = resample(sums, lambda: [exam[:, None] for exam in exams], _pooled, 1)
    return Difference(value=float(values.mean()), interval=interval, resampled=over)


def difference_of_means(
    before: Floats, clusters_before: Sequence[str], after: Floats, clusters_after: Sequence[str]
) -> Difference:
    """The mean of `before` minus that of `after`, each of at least one question, with a 95 % percentile interval.

    The sides are resampled apart, 9,999 times with a fixed seed: whole exams if each side has five or more, else
    questions within exams. There is no interval if an exam then has fewer than five questions, or no width.
    """
    sides = [_split(before, clusters_before), _split(after, clusters_after)]
    value = float(before.mean() - after.mean())
    whole = min(map(len, sides)) >= FEWEST
    if not whole and min(len(exam) for side in sides for exam in side) < FEWEST:
        return Difference(value=value, interval=None, resampled=Resampling.TOO_FEW)
    rng = np.random.default_rng(SEED)
    drawn = _draw_means(sides[0], rng, whole=whole) - _draw_means(sides[1], rng, whole=whole)
    tail = 50 * (1 - LEVEL)
    low, high = (float(end) for end in np.percentile(drawn, (tail, 100 - tail)))
    if np.isclose(low, high):
        return Difference(value=value, interval=None, resampled=Resampling.ALIKE)
    over = Resampling.CLUSTERS if whole else Resampling.WITHIN_EXAMS
    return Difference(value=value, interval=(low, high), resampled=over)


def right_by_place(
    questions: Sequence[Question], golds: Mapping[str, Gold], answers: Mapping[str, int | None]
) -> Floats:
    """How likely each answer were right if the golds of questions with the same option numbers changed places.

    Element i is question i: what a preference for some places gives alone, fractions of 1.
    """
    held: dict[tuple[int, ...], list[Gold]] = {}
    for question in questions:
        held.setdefault(question.option_numbers, []).append(golds[question.key])
    shares = {
        numbers: {number: sum(gold.accepts(number) for gold in of) / len(of) for number in numbers}
        for numbers, of in held.items()
    }
    return np.array([shares[each.option_numbers].get(answers[each.key] or 0, 0.0) for each in questions])


def _split(values: Floats, clusters: Sequence[str]) -> list[Floats]:
    """The values of each exam; exams in the order in which they first appear."""
    places: dict[str, list[int]] = {}
    for place, cluster in enumerate(clusters):
        places.setdefault(cluster, []).append(place)
    return [values[of] for of in places.values()]


def _pooled(total: Any, n: Any, axis: int = -1) -> Any:
    return np.stack([total.sum(axis=axis) / n.sum(axis=axis)])


def _draw_means(exams: Sequence[Floats], rng: np.random.Generator, *, whole: bool) -> Floats:
    """The pooled mean of each resample."""
    if whole:
        sums = np.array([[exam.sum(), len(exam)] for exam in exams])
        drawn = rng.multinomial(len(exams), np.full(len(exams), 1 / len(exams)), size=RESAMPLES) @ sums
        return np.asarray(drawn[:, 0] / drawn[:, 1])
    total = np.zeros(RESAMPLES)
    for exam in exams:
        distinct, counts = np.unique(exam, return_counts=True)
        total += rng.multinomial(len(exam), counts / len(exam), size=RESAMPLES) @ distinct
    return total / sum(map(len, exams))
