"""Passages that were looked up for a question: their scores against correctness, and their sources.

A score is in the unit of the run's own retriever, so those of two retrievers cannot be compared.
"""

import math
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from medexam.distributions import LEVEL, WILSON, beta_share, rate_interval
from medexam.frozen_model import FrozenModel
from medexam.predictions.calls import Count
from medexam.predictions.core import CorePrediction, Reason
from medexam.predictions.evidence.kind import Figures, Kind, end_values
from medexam.questions import Gold
from medexam.tables import NONE, Captioned, Table, coefficient, equals, percent, six_digits, with_interval

Borders = tuple[float, float, float]

_FEWEST = 4
"""Questions for which Fisher's interval is finite."""
_SAME = 1e-9
"""Scores that differ by less, relative to their size, differ by rounding alone."""
SHOWN_SOURCES = 20
QUARTILES = ("1, lowest", "2", "3", "4, highest")
"""What the groups are called, from the lowest scores to the highest."""


class RetrievedPassage(FrozenModel, allow_inf_nan=False):
    """A passage that a question's query found."""

    id: str
    source: str
    """The collection that it comes from."""
    score: float
    """In the retriever's own unit; the higher the more relevant."""
    kept: bool | None = None
    """Whether a verifier kept it for the prompt; left out where none judged."""
    support: float | None = None
    """The highest probability, 0 to 1, with which it entails an option, by a reader; left out where none judged."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class PassageFields(CorePrediction):
    """An answer with the passages that were found."""

    __slots__ = ()

    passages: tuple[RetrievedPassage, ...] | None = None
    """The passages that were found, most relevant first; None where none were looked for."""
    passages_cut: Count | None = None
    """Characters of the passages that were left out because the context was too small; None where none were shown."""

    @property
    def is_cut(self) -> bool:
        """Whether its prompt did not fit the model's context whole."""
        return self.reason is Reason.CONTEXT_OVERFLOW or bool(self.passages_cut)


class Correlation(Figures):
    """A correlation coefficient with what makes it believable."""

    r: float
    """Pearson's, from -1 to 1; with a variable of 0 and 1 it is the point-biserial correlation."""
    interval: tuple[float, float]
    """95 % interval by Fisher's transformation."""
    p: float
    """Two-sided, against no correlation."""


class ScoreQuartile(Figures):
    """The questions whose best passage's score lies in one quarter of the ranking by it."""

    low: float | None
    """The lowest score in the group; None if `n` is 0."""
    high: float | None
    """The highest score in the group; None if `n` is 0."""
    n: int
    accuracy: float | None
    """None if `n` is 0."""
    accuracy_interval: tuple[float, float] | None
    """Wilson's 95 % interval; None if `n` is 0."""


Quartiles = tuple[ScoreQuartile, ScoreQuartile, ScoreQuartile, ScoreQuartile]


class SourceShare(Figures):
    """What one source gave."""

    source: str
    passages: int
    """Passages of the source that were found, over all questions; one found by two questions counts twice."""
    share: float
    """`passages` by all passages that were found."""
    n: int
    """Questions whose best passage is of this source."""
    accuracy: float | None
    """Of those questions; None if `n` is 0."""
    accuracy_interval: tuple[float, float] | None
    """Wilson's 95 % interval; None if `n` is 0."""


class RetrievalMetrics(Figures):
    """What the passages tell, over the scored questions whose prediction says what was found.

    A question that was left unanswered because it did not fit the model's context at all says nothing of its passages
    and is not among them. One that is unanswered for another reason counts as not right. The best passage is the first
    one. Correa-Guillén et al. (2025) report r = 0.07 between MedCPT's scores and correctness.
    """

    n: int
    """Scored questions with passages."""
    without_passages: int
    """Scored questions whose query found none; they enter none of the numbers below."""
    score_correctness: Correlation | None
    """Of the best passage's score with correctness (1 right, 0 wrong or unanswered); None with fewer than four
    questions, where all scores are equal, and where all questions came out the same."""
    borders: tuple[float, float, float] | None
    """The quartiles of the best passages' scores (`numpy.quantile`, linear); a score on a border belongs to the group
    below it. None if `n` is 0."""
    quartiles: Quartiles
    """From the lowest scores to the highest. Equal scores stay together, so the groups may differ in size."""
    by_source: tuple[SourceShare, ...]
    """The most frequent source first. Passages that were cut are counted with the others."""
    cut: int
    """Questions whose passages were cut, in part or all of them, because the context was too small."""


@dataclass(frozen=True, slots=True)
class _Found:
    """One scored question whose query found a passage."""

    score: float
    """The best passage's."""
    source: str
    """The best passage's."""
    right: bool


def _measure(answers: Sequence[tuple[PassageFields, Gold]]) -> RetrievalMetrics | None:
    looked_up = cut = 0
    hits: list[_Found] = []
    passages: Counter[str] = Counter()
    for prediction, gold in answers:
        if prediction.passages is None:
            continue
        looked_up += 1
        cut += bool(prediction.passages_cut)
        right = gold.accepts(prediction.answer)
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


def _tables(figures: RetrievalMetrics, others: Collection[str]) -> Iterator[Captioned]:  # noqa: ARG001
    yield _quartiles(figures)
    yield _sources(figures)


def _quartiles(figures: RetrievalMetrics) -> Captioned:
    rows = tuple(
        (
            name,
            NONE if part.low is None or part.high is None else f"{part.low:.4g} to {part.high:.4g}",
            str(part.n),
            with_interval(percent(part.accuracy), part.accuracy_interval),
        )
        for name, part in zip(QUARTILES, figures.quartiles, strict=True)
    )
    caption = f"{_correlation(figures)} Groups by the best passage's score, in the retriever's own unit"
    if figures.borders is not None:
        borders = ", ".join(f"{border:.4g}" for border in figures.borders)
        caption += f", with borders at its quartiles {borders} (numpy.quantile); equal scores stay together"
    caption += f". Accuracy: percent, unanswered counts as wrong, with a 95 % interval ({WILSON})."
    if figures.without_passages:
        caption += f" Questions whose query found nothing: {figures.without_passages}."
    return Table("Relevance quartiles", ("Quartile", "Score", "n", "Accuracy"), rows), caption


def _correlation(figures: RetrievalMetrics) -> str:
    correlation = figures.score_correctness
    if correlation is None:
        return f"The score's correlation with being right cannot be computed, n = {figures.n}."
    r, low, high = (coefficient(value) for value in (correlation.r, *correlation.interval))
    return (
        f"r = {r} [{low}, {high}], p {equals(correlation.p)}, n = {figures.n}: "
        "correlation of the score with being right (point-biserial; Correa-Guillén et al. 2025 report 0.07 for MedCPT)."
    )


def _sources(figures: RetrievalMetrics) -> Captioned:
    sources = figures.by_source[:SHOWN_SOURCES]
    rows = tuple(
        (
            part.source,
            str(part.passages),
            percent(part.share),
            str(part.n),
            with_interval(percent(part.accuracy), part.accuracy_interval),
        )
        for part in sources
    )
    caption = (
        "Share: percent of the passages that were found. Best of: questions whose most relevant passage is of the "
        f"source. Accuracy: percent of these, with a 95 % interval ({WILSON}). Questions whose passages were cut to "
        f"fit the context: {figures.cut}."
    )
    if len(figures.by_source) > len(sources):
        caption += f" The {len(sources)} most frequent of {len(figures.by_source)} sources."
    return Table("Passages by source", ("Source", "Passages", "Share", "Best of", "Accuracy"), rows), caption


def _values(figures: RetrievalMetrics) -> Mapping[str, float | None]:
    correlation = figures.score_correctness
    return {} if correlation is None else end_values("retrieval_score_correctness", correlation.r, correlation.interval)


def _cells(prediction: PassageFields, item: object) -> dict[str, Any]:  # noqa: ARG001
    passages = prediction.passages
    return {
        "passages": None if passages is None else [passage.id for passage in passages],
        "passage_scores": None if passages is None else [passage.score for passage in passages],
    }


def _page(prediction: PassageFields) -> dict[str, Any]:
    passages = [
        [passage.id, passage.source, six_digits(passage.score), *([] if passage.kept is None else [passage.kept])]
        for passage in prediction.passages or ()
    ]
    return {
        "passages": None if prediction.passages is None else passages,
        "passages_cut": prediction.passages_cut or None,
    }


PASSAGES = Kind(
    figures="retrieval",
    measure=_measure,
    tables=_tables,
    values=_values,
    columns={"passages": "[string]", "passage_scores": "[double]", "passages_cut": "int64"},
    cells=_cells,
    page=_page,
)
