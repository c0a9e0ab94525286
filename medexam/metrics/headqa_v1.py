"""The figures as the HEAD-QA v1 paper prints them.

Vilares and Gómez-Rodríguez (2019), "HEAD-QA: A Healthcare Dataset for Complex Reasoning". Its tables round an exam's
accuracy to three decimals, average over the exams (of a discipline, or all of them) and round again. Every exam weighs
the same, however many questions it has, which is why these differ from the pooled figures beside them.
"""

from collections.abc import Collection

from medexam.metrics.counting import Tally


def headqa_v1_accuracy(exams: Collection[Tally]) -> float | None:
    """Mean accuracy of the exams in percent, with one decimal; None without an exam.

    Every exam must have a scored question.
    """
    if not exams:
        return None
    mean = sum(round(exam.right / exam.n, 3) for exam in exams) / len(exams)
    return round(100 * round(mean, 3), 1)


def headqa_v1_points(exams: Collection[Tally]) -> float | None:
    """Mean of the exams' `3 right - wrong`, with one decimal; None without an exam."""
    if not exams:
        return None
    return round(sum(exam.points for exam in exams) / len(exams), 1)
