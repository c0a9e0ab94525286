"""Paired statistics: two runs, or several, on the same questions.

Pure functions over questions, golds and predictions. Questions of one exam share their authors and their year, so
intervals resample whole exams if there are enough; McNemar's test looks at the questions that flip and at no others.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import coin_tail
from medexam.metrics.counting import POINTS, RIGHT, UNANSWERED, Outcomes, cohens_kappa
from medexam.metrics.intervals import Floats, resample
from medexam.metrics.paired.results import Complementarity, Difference, Flips, Paired, Verdict
from medexam.metrics.paired.sheet import Sheet, number_as_seen

ALPHA = 0.05
"""A p-value at or over this tells no two runs apart."""


def compare_pair(sheet: Sheet, other: int) -> Paired:
    """Compare run `other` of the sheet with its first, the baseline; at least one question, which both have scored."""
    baseline, run = sheet.outcomes[0], sheet.outcomes[other]
    differences = np.column_stack(
        [(run == RIGHT) * 1.0 - (baseline == RIGHT), POINTS[run] - POINTS[baseline], np.ones(len(baseline))]
    )
    clusters = int(sheet.exams.max()) + 1
    exams: Floats = np.column_stack([np.bincount(sheet.exams, column, clusters) for column in differences.T])
    accuracy, exam_score, points = paired_differences(
        exams, lambda: [differences[sheet.exams == exam, :-1] for exam in range(clusters)]
    )
    if sheet.independent.any():
        clusters = len(baseline)
        accuracy, exam_score, _ = paired_differences(differences, list)
    flips = _flips(sheet.keys, baseline, run)
    n = len(baseline)
    return Paired(
        n=n,
        exams=clusters,
        baseline_accuracy=int((baseline == RIGHT).sum()) / n,
        accuracy=accuracy,
        exam_score=exam_score,
        points=points,
        flips=flips,
        either_right=(n - flips.both_wrong) / n,
        same_answer=int((sheet.answers[0] == sheet.answers[other]).sum()) / n,
        kappa=kappa(sheet.answers[0], sheet.answers[other]),
    )


def paired_differences(
    exams: Floats, questions: Callable[[], Sequence[Floats]]
) -> tuple[Difference, Difference, Difference]:
    """Find the differences of accuracy, exam score (fractions of 1) and points of an exam, each with its interval.

    Row i of `exams` is exam i: how many more right answers and points the other run has, and its questions; at least
    one row. `questions` gives for each exam a row a question, with the first two columns. Intervals are those of
    `resample`: a resample takes an exam, or a question, of both runs together.
    """
    right, points, n = exams.sum(axis=0)
    values = _differences(right, points, n, len(exams))
    intervals = resample(exams, questions, _differences, len(values))
    differences = [
        Difference(value=float(value), interval=interval, resampled=over)
        for value, (interval, over) in zip(values, intervals, strict=True)
    ]
    return differences[0], differences[1], differences[2]


def _flips(keys: Sequence[str], baseline: Outcomes, run: Outcomes) -> Flips:
    """Count the flips; item i of each is question i."""
    scored = (baseline <= UNANSWERED) & (run <= UNANSWERED)
    before, after = baseline == RIGHT, run == RIGHT
    lost, gained = (
        tuple(keys[place] for place in np.flatnonzero(scored & flipped).tolist())
        for flipped in (before & ~after, after & ~before)
    )
    return Flips(
        right_to_wrong=lost,
        wrong_to_right=gained,
        both_right=int((scored & before & after).sum()),
        both_wrong=int((scored & ~before & ~after).sum()),
        p=mcnemar_p(len(lost), len(gained)),
    )


def mcnemar_p(lost: int, gained: int) -> float:
    """Compute the two-sided exact p-value of `lost` flips one way against `gained` the other; 1 if there are none."""
    return min(1.0, 2 * coin_tail(min(lost, gained), lost + gained))


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """Adjust `p_values` for their number, in their order; a single one stays.

    Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    p_array = np.asarray(p_values, dtype=float)
    order = np.argsort(p_array, kind="stable")
    # The smallest is multiplied by their number, the next by one less; none is below one that was smaller before.
    stepped = np.maximum.accumulate(p_array[order] * np.arange(len(p_array), 0, -1))
    adjusted = np.empty(len(p_array))
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in adjusted]


def kappa(baseline: NDArray[np.int64], run: NDArray[np.int64]) -> float | None:
    """Compute Cohen's kappa of two runs' answers; item i of both is question i, and `NO_ANSWER` a category of its own.

    None if all answers of both runs are the same one, for which it is not defined.
    """
    pairs = number_as_seen(np.column_stack([baseline, run]).ravel()).reshape(-1, 2)
    categories = int(pairs.max()) + 1
    if categories < 2:
        return None
    table = np.bincount(pairs @ (categories, 1), minlength=categories**2)
    return cohens_kappa(table.reshape(categories, categories).astype(float))


def complementarity(sheet: Sheet) -> Complementarity:
    """Count what the runs of a sheet have right together on its questions, each of which all of them have scored."""
    right = sheet.right
    right_counts = right.sum(axis=0)
    return Complementarity(
        n=len(sheet.keys),
        any_right=int((right_counts > 0).sum()),
        all_right=int((right_counts == len(right)).sum()),
        none_right=int((right_counts == 0).sum()),
        alone_right=tuple(int(alone) for alone in (right & (right_counts == 1)).sum(axis=1)),
    )


def judge(accuracy: Difference, p: float) -> Verdict:
    """Judge a difference of accuracy.

    `better` or `worse` only where the paired interval leaves out 0 and `p`, McNemar's and adjusted, is under 0.05: with
    few exams the one, with exams that differ much the other would say it too easily.
    """
    if not accuracy.excludes_zero or p >= ALPHA:
        return "not told apart"
    return "better" if accuracy.value > 0 else "worse"


def hold_to(verdict: Verdict, difference: Difference, floor: float | None) -> Verdict:
    """Return the verdict, unless the difference is not more than the noise floor; None: there is none."""
    return "not told apart" if floor is not None and abs(difference.value) <= floor else verdict


def _differences(right: Any, points: Any, n: Any, exams: int) -> Any:
    """Stack as rows the pooled differences of accuracy and exam score, and the mean difference of the exams' points."""
    return np.stack([right / n, points / (3 * n), points / exams])
