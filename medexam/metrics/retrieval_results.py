"""What `metrics.json` holds of a run's passages: their scores and sources, verdicts, queries, citations."""

from medexam.frozen_model import FrozenModel


class Correlation(FrozenModel):
    """A correlation coefficient with what makes it believable."""

    r: float
    """Pearson's, from -1 to 1; with a variable of 0 and 1 it is the point-biserial correlation."""
    interval: tuple[float, float]
    """95 % interval by Fisher's transformation."""
    p: float
    """Two-sided, against no correlation."""


class ScoreQuartile(FrozenModel):
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


class SourceShare(FrozenModel):
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


class RetrievalMetrics(FrozenModel):
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
    quartiles: tuple[ScoreQuartile, ScoreQuartile, ScoreQuartile, ScoreQuartile]
    """From the lowest scores to the highest. Equal scores stay together, so the groups may differ in size."""
    by_source: tuple[SourceShare, ...]
    """The most frequent source first. Passages that were cut are counted with the others."""
    cut: int
    """Questions whose passages were cut, in part or all of them, because the context was too small."""
