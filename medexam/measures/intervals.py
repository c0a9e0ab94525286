"""95 % intervals of scores: bootstraps over exams, or over the questions within them.

Questions of one exam share their authors and their year, so the scores' bootstrap draws whole exams. Fewer than five
exams cannot say how exams differ: then it draws questions within each exam. It knows nothing of questions or
predictions, only counts.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import LEVEL
from medexam.measures.counting import RIGHT, UNANSWERED, WRONG, Outcomes
from medexam.measures.results import Interval, Resampling

RESAMPLES = 9_999
SEED = 20_130_101
"""Fixed, so that scoring a stored run again gives the same interval."""
MANY = 5_000
"""Exams from which on resamples are not drawn one exam after the other."""
_DRAWN_AT_ONCE = 10_000_000
"""Exams of resamples in memory at a time."""
_DISTINCT = 1_000
"""Different exams whose number of times is drawn instead of single exams."""
FEWEST = 5
"""Clusters that a bootstrap over clusters needs, and questions that each exam needs for one within exams."""

Floats = NDArray[np.float64]
Statistic = Callable[..., Any]
"""Takes the sum over all exams of each thing counted, the last of them questions, and the number of exams; its rows are
the numbers that get intervals."""
Found = tuple[Interval | None, Resampling]
"""An interval and what it resamples, or None and why."""


def score_intervals(exams: NDArray[np.int64], cancelling: float) -> list[Found]:
    """Find the intervals of the exam score (fractions of 1) and the points of exams.

    A row of `exams` counts an exam's right, wrong and unanswered questions, one at least. `cancelling` is the number
    of wrong answers that cancel a right one.
    """
    gains = _gains(cancelling)
    sums = np.column_stack([exams @ gains, exams.sum(axis=1)])
    return resample(sums, lambda: [np.repeat(gains[:, None], exam, axis=0) for exam in exams], _means(cancelling), 2)


def question_interval(outcomes: Outcomes, cancelling: float) -> Found:
    """Find the interval of the exam score where no exam holds questions together: each is resampled on its own."""
    gains = _gains(cancelling)[outcomes[outcomes <= UNANSWERED]]
    return resample(np.column_stack([gains, np.ones(len(gains))]), list, _means(cancelling), 2)[0]


def resample(
    sums: Floats, questions: Callable[[], Sequence[Floats]], statistic: Statistic, numbers: int
) -> list[Found]:
    """Find a 95 % percentile interval of each of the `numbers` rows of `statistic`, from 9,999 resamples, seed fixed.

    Row i of `sums` belongs to exam i; its last column counts questions. With five exams or more, whole exams are drawn
    with replacement. With fewer, each exam's own questions are: `questions` gives for each exam a row a question, with
    the columns of `sums` but the last. There is no interval if an exam has fewer than five, and none without width.
    """
    if len(sums) >= FEWEST:
        intervals, kind = _resample_exams(sums, statistic), Resampling.CLUSTERS
    elif not len(sums) or sums[:, -1].min() < FEWEST:
        return [(None, Resampling.TOO_FEW)] * numbers
    else:
        intervals, kind = _resample_questions(questions(), statistic), Resampling.WITHIN_EXAMS
    return [(None, Resampling.ALIKE) if np.isclose(low, high) else ((low, high), kind) for low, high in intervals]


def _resample_exams(sums: Floats, statistic: Statistic) -> list[Interval]:
    ordered, tail = np.sort(statistic(*_draw_exams(sums).T, len(sums)), axis=-1), (1 - LEVEL) / 2
    ends = []
    # In the arithmetic of `scipy.stats.bootstrap`, to the last digit: numpy's percentiles round otherwise.
    for share in (tail, 1 - tail):
        above, part = divmod(share * RESAMPLES + (1 - share), 1)
        ends.append((1 - part) * ordered[..., int(above) - 1] + part * ordered[..., int(above)])
    return [(float(low), float(high)) for low, high in zip(*ends, strict=True)]


def _resample_questions(exams: Sequence[Floats], statistic: Statistic) -> list[Interval]:
    """Draw the questions of each exam with replacement, which is to draw how often each distinct row occurs."""
    rng = np.random.default_rng(SEED)
    exam_sums = []
    for rows in exams:
        distinct, counts = _count_distinct(rows)
        times = rng.multinomial(len(rows), counts / len(rows), size=RESAMPLES)
        exam_sums.append(np.column_stack([times @ distinct, np.full(RESAMPLES, float(len(rows)))]))
    columns = np.stack(exam_sums, axis=-1).swapaxes(0, 1)
    return _percentiles(statistic(*(column.sum(axis=-1) for column in columns), len(exams)))


def _draw_exams(sums: Floats) -> Floats:
    """Sum over each resample, `[RESAMPLES, columns]`. Of many exams few may differ: then their times are drawn.

    Of others the draws are those of `scipy.stats.bootstrap` with the same seed, which takes longer to import.
    """
    rng = np.random.default_rng(SEED)
    if len(sums) > MANY:
        distinct, counts = _count_distinct(sums)
        if len(distinct) <= _DISTINCT:
            times = rng.multinomial(len(sums), counts / len(sums), size=RESAMPLES)
            totals: Floats = times @ distinct
            return totals
    batch = max(1, _DRAWN_AT_ONCE // len(sums))
    sizes = [min(batch, RESAMPLES - start) for start in range(0, RESAMPLES, batch)]
    # One column at a time: together they would not fit beside each other.
    batches = (rng.integers(0, len(sums), (size, len(sums))) for size in sizes)
    return np.concatenate([np.column_stack([column[indices].sum(axis=1) for column in sums.T]) for indices in batches])


def _count_distinct(rows: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Count how often each different row occurs; rows in ascending order of the first column and then of the next."""
    # `np.unique` compares whole rows one by one, which takes ten times as long.
    ordered = rows[np.lexsort(rows.T[::-1])]
    begins = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))
    return ordered[begins], np.diff(begins, append=len(ordered))


def _percentiles(rows: Any) -> list[Interval]:
    """Find the middle 95 % of each row."""
    tail = 50 * (1 - LEVEL)
    low, high = np.percentile(rows, (tail, 100 - tail), axis=-1)
    return [(float(start), float(end)) for start, end in zip(low, high, strict=True)]


def _gains(cancelling: float) -> Floats:
    """Return the points of a question that is right, wrong and unanswered."""
    gains = np.zeros(UNANSWERED + 1)
    gains[RIGHT], gains[WRONG] = cancelling, -1
    return gains


def _means(cancelling: float) -> Statistic:
    """Return what computes row 0, the pooled exam score, and row 1, the mean of the exams' points."""
    return lambda points, n, exams: np.stack([points / (cancelling * n), points / exams])
