"""From stored passages to `RetrievalMetrics`: pure functions, so stored runs are scored again.

What a prediction says was found is all that is read: this knows neither retrievers nor the passages' words.
"""

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from medexam.distributions import LEVEL, beta_share, rate_interval
from medexam.items import AnswerKey
from medexam.metrics.retrieval_results import (
    Correlation,
    RetrievalMetrics,
    ScoreQuartile,
    SourceShare,
)
from medexam.predictions import Prediction, Status
from medexam.questions import Question

Borders = tuple[float, float, float]
Quartiles = tuple[ScoreQuartile, ScoreQuartile, ScoreQuartile, ScoreQuartile]

_FEWEST = 4
"""Questions for which Fisher's interval is finite."""
_SAME = 1e-9
"""Scores that differ by less, relative to their size, differ by rounding alone."""


@dataclass(frozen=True, slots=True)
class _Found:
    """One scored question whose query found a passage."""

    score: float
    """The best passage's."""
    source: str
    """The best passage's."""
    right: bool


def retrieval_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> RetrievalMetrics | None:
    """Compute the metrics of those of `questions` whose prediction says what was found; None if none does.

    Raises `DatasetError` if `key` lacks one of them.
    """
    looked_up = cut = 0
    hits: list[_Found] = []
    passages: Counter[str] = Counter()
    for question in questions:
        prediction = predictions.get(question.key)
        if prediction is None or prediction.status is Status.FAILED or prediction.passages is None:
            continue
        looked_up += 1
        cut += bool(prediction.passages_cut)
        right = key[question.key].accepts(prediction.answer)
        passages.update(sys.intern(passage.source) for passage in prediction.passages)
        if prediction.passages:
            best = prediction.passages[0]
            hits.append(_Found(best.score, sys.intern(best.source), right))
    if not looked_up:
        return None
    scores, outcomes = [hit.score for hit in hits], [hit.right for hit in hits]
    borders = quartile_borders(scores)
    return RetrievalMetrics(
        n=len(hits),
        without_passages=looked_up - len(hits),
        score_correctness=score_correctness(scores, outcomes),
        borders=borders,
        quartiles=score_quartiles(scores, outcomes, borders),
        by_source=_source_shares(passages, hits),
        cut=cut,
    )


def score_correctness(scores: Sequence[float], right: Sequence[bool]) -> Correlation | None:
    """Correlate each question's score with whether it is right.

    None with fewer than four questions, and where the scores (but for rounding) or the outcomes are all the same.
    Correa-Guillén et al. (2025) report r = 0.07 for MedCPT's scores.
    """
    if len(scores) < _FEWEST or len(set(right)) < 2 or np.allclose(scores, scores[0], rtol=_SAME, atol=0.0):
        return None
    r = float(np.clip(np.corrcoef(scores, np.asarray(right, dtype=float))[0, 1], -1, 1))
    # Fisher's transformation; that of a correlation of 1 is infinite, and its interval a point.
    with np.errstate(divide="ignore"):
        middle = np.arctanh(r)
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) / math.sqrt(len(scores) - 3)
    # The t-test of no correlation: degrees / (degrees + t * t) is 1 - r * r.
    p = beta_share((len(scores) - 2) / 2, 0.5, (1 - r) * (1 + r), r * r)
    return Correlation(r=r, interval=(float(np.tanh(middle - half)), float(np.tanh(middle + half))), p=p)


def quartile_borders(scores: Sequence[float]) -> Borders | None:
    """Find the three quartiles by `numpy.quantile` with its default, linear interpolation; None without scores."""
    if not scores:
        return None
    first, second, third = (float(border) for border in np.quantile(scores, (0.25, 0.5, 0.75)))
    return first, second, third


def score_quartiles(scores: Sequence[float], right: Sequence[bool], borders: Borders | None) -> Quartiles:
    """Split the questions into the four groups between `borders`, from the lowest scores to the highest.

    A score on a border belongs to the group below it; `borders` may be None if there are no scores.
    """
    groups: list[list[tuple[float, bool]]] = [[], [], [], []]
    places = [] if borders is None else np.searchsorted(borders, scores, side="left").tolist()
    for place, score, is_right in zip(places, scores, right, strict=True):
        groups[place].append((score, is_right))
    first, second, third, fourth = (_quartile(group) for group in groups)
    return first, second, third, fourth


def _quartile(group: Sequence[tuple[float, bool]]) -> ScoreQuartile:
    scores = [score for score, _ in group]
    right = sum(is_right for _, is_right in group)
    n = len(group)
    return ScoreQuartile(
        low=min(scores, default=None),
        high=max(scores, default=None),
        n=n,
        accuracy=right / n if n else None,
        accuracy_interval=rate_interval(right, n),
    )


def _source_shares(passages: Counter[str], hits: Sequence[_Found]) -> tuple[SourceShare, ...]:
    """Build a share for each source, most frequent first, equals by name; `passages` counts those of every question."""
    best = Counter(hit.source for hit in hits)
    right = Counter(hit.source for hit in hits if hit.right)
    return tuple(
        SourceShare(
            source=source,
            passages=count,
            share=count / passages.total(),
            n=best[source],
            accuracy=right[source] / best[source] if best[source] else None,
            accuracy_interval=rate_interval(right[source], best[source]),
        )
        for source, count in sorted(passages.items(), key=lambda item: (-item[1], item[0]))
    )
