"""Paired statistics: two runs, or several, on the same questions.

Pure functions over questions, golds and predictions. Questions of one exam share their authors and their year, so
intervals resample whole exams if there are enough; McNemar's test looks at the questions that flip and at no others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.items import AnswerKey
from medexam.metrics.counting import Tally, cohens_kappa, count, count_apart, scored_exams
from medexam.metrics.intervals import resample
from medexam.metrics.paired.results import Complementarity, Difference, Flips, Paired, Verdict
from medexam.predictions import Prediction, Status
from medexam.questions import Exam, Question

Predictions = Mapping[str, Prediction]
Pairs = Sequence[tuple[Tally, Tally]]
"""What came out in the baseline and in the other run, of exams or of single questions."""

ALPHA = 0.05
"""A p-value at or over this tells no two runs apart."""


def compare_pair(questions: Sequence[Question], key: AnswerKey, baseline: Predictions, other: Predictions) -> Paired:
    """`other` beside `baseline` on exactly these `questions`, at least one, each of which both have scored.

    Raises `DatasetError` if `key` lacks a question.
    """
    before, after = (scored_exams(count(questions, key, predictions)) for predictions in (baseline, other))

    def apart() -> list[Pairs]:
        return _split(questions, key, baseline, other)

    exams = [(before[exam], after[exam]) for exam in before]
    accuracy, exam_score, points = paired_differences(exams, apart)
    clusters = len(before)
    if any(exam.independent for exam in before):
        clusters = len(questions)
        accuracy, exam_score, _ = paired_differences([pair for pairs in apart() for pair in pairs], list)
    flips = count_flips([question.key for question in questions], key, baseline, other)
    answers = [(baseline[question.key].answer, other[question.key].answer) for question in questions]
    n = len(questions)
    return Paired(
        n=n,
        exams=clusters,
        baseline_accuracy=sum(exam.right for exam in before.values()) / n,
        accuracy=accuracy,
        exam_score=exam_score,
        points=points,
        flips=flips,
        either_right=(n - flips.both_wrong) / n,
        same_answer=sum(mine == its for mine, its in answers) / n,
        kappa=kappa(answers),
    )


def paired_differences(
    exams: Pairs, questions: Callable[[], Sequence[Pairs]]
) -> tuple[Difference, Difference, Difference]:
    """The differences of accuracy, exam score (fractions of 1) and points of an exam, each with its interval.

    `exams` holds each exam's tallies, the baseline's first, of the same questions, at least one; `questions` gives
    those of each exam's single questions. Intervals are those of `resample`: a resample takes an exam, or a question,
    of both runs together.
    """
    sums = np.column_stack([_subtract(exams), [float(mine.n) for mine, _ in exams]])
    right, points, n = sums.sum(axis=0)
    values = _differences(right, points, n, len(sums))
    intervals = resample(sums, lambda: [_subtract(exam) for exam in questions()], _differences, len(values))
    found = [
        Difference(value=float(value), interval=interval, resampled=over)
        for value, (interval, over) in zip(values, intervals, strict=True)
    ]
    return found[0], found[1], found[2]


def count_flips(questions: Iterable[str], key: AnswerKey, baseline: Predictions, other: Predictions) -> Flips:
    """How `other` differs from `baseline` on the questions of these keys; both are predictions by key.

    Unanswered counts as wrong. Raises `DatasetError` if `key` lacks a question.
    """
    groups: dict[tuple[bool, bool], list[str]] = {(a, b): [] for a in (True, False) for b in (True, False)}
    left_out = 0
    for question in questions:
        gold = key[question]
        before, after = baseline.get(question), other.get(question)
        if before is None or after is None or Status.FAILED in (before.status, after.status):
            left_out += 1
        else:
            groups[gold.accepts(before.answer), gold.accepts(after.answer)].append(question)
    lost, gained = groups[True, False], groups[False, True]
    return Flips(
        right_to_wrong=tuple(lost),
        wrong_to_right=tuple(gained),
        both_right=len(groups[True, True]),
        both_wrong=len(groups[False, False]),
        left_out=left_out,
        p=mcnemar_p(len(lost), len(gained)),
    )


def mcnemar_p(lost: int, gained: int) -> float:
    """The two-sided exact test of `lost` flips one way against `gained` the other; 1 if there are none."""
    if lost + gained == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(lost, lost + gained, 0.5).pvalue)


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """`p_values` adjusted for their number, in their order; a single one stays.

    Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    found = np.asarray(p_values, dtype=float)
    order = np.argsort(found, kind="stable")
    # The smallest is multiplied by their number, the next by one less; none is below one that was smaller before.
    stepped = np.maximum.accumulate(found[order] * np.arange(len(found), 0, -1))
    adjusted = np.empty(len(found))
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in adjusted]


def kappa(answers: Sequence[tuple[int | None, int | None]]) -> float | None:
    """Cohen's kappa of two runs' answers to the same questions; None is a category of its own.

    None if all answers of both runs are the same one, for which it is not defined.
    """
    categories = {category: place for place, category in enumerate(dict.fromkeys(chain.from_iterable(answers)))}
    if len(categories) < 2:
        return None
    table = np.zeros((len(categories), len(categories)))
    for mine, its in answers:
        table[categories[mine], categories[its]] += 1
    return cohens_kappa(table)


def complementarity(questions: Sequence[Question], key: AnswerKey, runs: Sequence[Predictions]) -> Complementarity:
    """What `runs` have right together on these `questions`, each of which all of them have scored.

    Raises `DatasetError` if `key` lacks a question.
    """
    golds = [key[question.key] for question in questions]
    asked = list(zip(questions, golds, strict=True))
    right = np.array([[gold.accepts(run[question.key].answer) for question, gold in asked] for run in runs])
    together = right.sum(axis=0)
    return Complementarity(
        n=len(questions),
        any_right=int((together > 0).sum()),
        all_right=int((together == len(runs)).sum()),
        none_right=int((together == 0).sum()),
        alone_right=tuple(int(alone) for alone in (right & (together == 1)).sum(axis=1)),
    )


def judge(accuracy: Difference, p: float) -> Verdict:
    """What may be said of a difference of accuracy.

    `better` or `worse` only where the paired interval leaves out 0 and `p`, McNemar's and adjusted, is under 0.05: with
    few exams the one, with exams that differ much the other would say it too easily.
    """
    if not accuracy.excludes_zero or p >= ALPHA:
        return "not told apart"
    return "better" if accuracy.value > 0 else "worse"


def hold_to(verdict: Verdict, difference: Difference, floor: float | None) -> Verdict:
    """The verdict, unless the difference is not more than the noise floor; None: there is none."""
    return "not told apart" if floor is not None and abs(difference.value) <= floor else verdict


def _split(questions: Sequence[Question], key: AnswerKey, baseline: Predictions, other: Predictions) -> list[Pairs]:
    """The tallies of each exam's questions, one by one; exams in the order in which they first appear."""
    mine, its = (count_apart(questions, key, predictions) for predictions in (baseline, other))
    exams: dict[Exam, list[tuple[Tally, Tally]]] = {}
    for question, pair in zip(questions, zip(mine, its, strict=True), strict=True):
        exams.setdefault(question.exam, []).append(pair)
    return list(exams.values())


def _subtract(pairs: Pairs) -> NDArray[np.float64]:
    """One row a pair: what the other run has more right answers, and more points."""
    return np.array([[its.right - mine.right, its.points - mine.points] for mine, its in pairs], dtype=float)


def _differences(right: Any, points: Any, n: Any, exams: int) -> Any:
    """Rows: the pooled differences of accuracy and of exam score, and the mean difference of the exams' points."""
    return np.stack([right / n, points / (3 * n), points / exams])
