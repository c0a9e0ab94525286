"""Means of values of single questions, and differences of means between two sets of exams, with intervals over exams.

A value may be whether an answer is right, or a run's minus another's on the same question: then a difference of means
is a difference in differences. It knows nothing of runs.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from medexam import Question
from medexam.distributions import LEVEL
from medexam.measures import FEWEST, RESAMPLES, SEED, Difference, Resampling, number_as_seen, resample
from medexam.questions import Gold

Floats = NDArray[np.float64]


def mean_value(values: Floats, clusters: Sequence[str]) -> Difference:
    """Average over all questions, at least one, with the interval of `resample`; `clusters[i]` is the exam of i."""
    ((interval, over),) = resample(values[:, None], number_as_seen(clusters))
    return Difference(value=float(values.mean()), interval=interval, resampled=over)


def difference_of_means(
    first: Floats, clusters_first: Sequence[str], second: Floats, clusters_second: Sequence[str]
) -> Difference:
    """Subtract the mean of `second` from that of `first`, each of a question or more, with a 95 % percentile interval.

    Drawn 9,999 times with a fixed seed. If each side has questions of five exams or more, whole exams are drawn: those
    of each side apart if no exam has questions on both, else all together. With fewer, each exam's own questions are,
    on each side. Then there is no interval if an exam has fewer than five questions on its side, or without width.
    """
    value = float(first.mean() - second.mean())
    sides = [_split(first, clusters_first), _split(second, clusters_second)]
    by_exam = min(map(len, sides)) >= FEWEST
    if not by_exam and min(len(exam) for side in sides for exam in side.values()) < FEWEST:
        return Difference(value=value, interval=None, resampled=Resampling.TOO_FEW)
    rng = np.random.default_rng(SEED)
    differences = (
        _draw_exams(sides[0], sides[1], rng)
        if by_exam
        else _draw_questions(sides[0], rng) - _draw_questions(sides[1], rng)
    )
    tail = 50 * (1 - LEVEL)
    low, high = (float(end) for end in np.nanpercentile(differences, (tail, 100 - tail)))
    if not by_exam and np.isclose(low, high):
        return Difference(value=value, interval=None, resampled=Resampling.ALIKE)
    over = Resampling.CLUSTERS if by_exam else Resampling.WITHIN_EXAMS
    return Difference(value=value, interval=(low, high), resampled=over)


def right_by_place(
    questions: Sequence[Question], golds: Mapping[str, Gold], answers: Mapping[str, int | None]
) -> Floats:
    """Find how likely each answer were right if the golds of questions with the same option numbers changed places.

    Element i is question i: what a preference for some places gives alone, fractions of 1.
    """
    golds_by_numbers: dict[tuple[int, ...], list[Gold]] = {}
    for question in questions:
        golds_by_numbers.setdefault(question.option_numbers, []).append(golds[question.key])
    shares = {
        numbers: {number: sum(gold.accepts(number) for gold in group_golds) / len(group_golds) for number in numbers}
        for numbers, group_golds in golds_by_numbers.items()
    }
    return np.array([shares[each.option_numbers].get(answers[each.key] or 0, 0.0) for each in questions])


def _split(values: Floats, clusters: Sequence[str]) -> dict[str, Floats]:
    """Split the values by exam; exams in the order in which they first appear."""
    places: dict[str, list[int]] = {}
    for place, cluster in enumerate(clusters):
        places.setdefault(cluster, []).append(place)
    return {cluster: values[members] for cluster, members in places.items()}


def _draw_exams(first: dict[str, Floats], second: dict[str, Floats], rng: np.random.Generator) -> Floats:
    """Find the difference of the pooled means in each resample of whole exams; NaN if one side has no question left."""
    strata = [[*first], [*second]] if first.keys().isdisjoint(second) else [[*(first | second)]]
    totals = np.zeros((RESAMPLES, 4))
    for exams in strata:
        parts = [[side.get(exam, np.zeros(0)) for side in (first, second)] for exam in exams]
        sums = np.array([[number for part in sides for number in (part.sum(), len(part))] for sides in parts])
        totals += rng.multinomial(len(exams), np.full(len(exams), 1 / len(exams)), size=RESAMPLES) @ sums
    with np.errstate(invalid="ignore"):
        return np.asarray(totals[:, 0] / totals[:, 1] - totals[:, 2] / totals[:, 3])


def _draw_questions(exams: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
    """Find the pooled mean in each resample of every exam's own questions."""
    total = np.zeros(RESAMPLES)
    for exam in exams.values():
        distinct, counts = np.unique(exam, return_counts=True)
        total += rng.multinomial(len(exam), counts / len(exam), size=RESAMPLES) @ distinct
    return total / sum(map(len, exams.values()))
