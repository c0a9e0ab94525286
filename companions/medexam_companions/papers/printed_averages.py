"""Averages over exams for tables that stand beside the first paper's, with its rounding and with intervals.

Vilares and Gómez-Rodríguez (2019). Their script rounds binary numbers; `medexam.measures` rounds exactly.
"""

from collections.abc import Sequence

import numpy as np

from medexam.distributions import LEVEL
from medexam.measures import RESAMPLES, SEED, Interval, Scores, headqa_v1_points


def printed_accuracy(exams: Sequence[Scores]) -> float | None:
    """Compute the mean accuracy of the exams in percent, rounded as the paper prints it; None without an exam."""
    if not exams:
        return None
    return round(100 * round(sum(round((exam.right or 0) / exam.n, 3) for exam in exams) / len(exams), 3), 1)


def printed_points(exams: Sequence[Scores]) -> float | None:
    """Average the exams' `3 right - wrong`, with one decimal; None without an exam."""
    return headqa_v1_points([3 * (exam.right or 0) - (exam.wrong or 0) for exam in exams])


def printed_interval(exams: Sequence[Scores], measure: str) -> Interval | None:
    """Compute the 95 % interval of the mean of exams, resampling each exam's questions; None without an exam.

    `measure` is `accuracy`, in percent, or `points`. The exams are those of the paper and are not drawn; each must have
    a scored question.
    """
    if not exams:
        return None
    rng = np.random.default_rng(SEED)
    total = np.zeros(RESAMPLES)
    for exam in exams:
        shares = np.array([exam.right or 0, exam.wrong or 0, exam.unanswered]) / exam.n
        right, wrong, _ = rng.multinomial(exam.n, shares, size=RESAMPLES).T
        total += 100 * right / exam.n if measure == "accuracy" else 3 * right - wrong
    low, high = np.quantile(total / len(exams), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
