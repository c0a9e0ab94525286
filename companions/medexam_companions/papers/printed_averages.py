"""Averages over exams for tables that stand beside the first paper's, with its rounding and with intervals.

Vilares and Gómez-Rodríguez (2019). Their script rounds binary numbers; `exam_averages` rounds exactly.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from medexam.distributions import LEVEL
from medexam.metrics import RESAMPLES, SEED, Interval, Tally


def printed_accuracy(exams: Collection[Tally]) -> float | None:
    """Compute the mean accuracy of the exams in percent, rounded as the paper prints it; None without an exam."""
    if not exams:
        return None
    return round(100 * round(sum(round(exam.right / exam.n, 3) for exam in exams) / len(exams), 3), 1)


def printed_interval(exams: Sequence[Tally], measure: Literal["accuracy", "points"]) -> Interval | None:
    """Compute the 95 % percentile interval of the mean of exams, in percent or points, resampling each exam's
    questions.

    The exams themselves are those of the paper and are not drawn. Every exam must have a scored question; None without
    an exam.
    """
    return _interval(tuple((exam.right, exam.wrong, exam.unanswered) for exam in exams), measure) if exams else None


# A report asks for each interval several times: for its text, its document and its files.
@lru_cache(maxsize=10_000)
def _interval(exams: tuple[tuple[int, int, int], ...], measure: Literal["accuracy", "points"]) -> Interval:
    rng = np.random.default_rng(SEED)
    total = np.zeros(RESAMPLES)
    for counts in exams:
        n = sum(counts)
        right, wrong, _ = rng.multinomial(n, np.array(counts) / n, size=RESAMPLES).T
        total += 100 * right / n if measure == "accuracy" else 3 * right - wrong
    low, high = np.quantile(total / len(exams), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
