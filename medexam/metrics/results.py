"""What `metrics.json` holds: the field names, their units, and what None means.

Only data; the modules beside this one find the numbers. Shares, probabilities and accuracies are fractions of 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, Field

from medexam.frozen_model import FrozenModel
from medexam.metrics.exam_averages import ExamAverages
from medexam.model_calls import Reading
from medexam.predictions.evidence.kinds import EvidenceMeasures

Interval = tuple[float, float]
"""Low and high end of a 95 % interval, in the unit of the number that it belongs to."""


class Resampling(StrEnum):
    """What an interval resamples, or why there is none."""

    CLUSTERS = "clusters"
    """Whole exams; or whole questions, where no exam holds them together."""
    WITHIN_EXAMS = "questions within exams"
    """There are fewer than five exams: each keeps its questions' number, and the interval says nothing of others."""
    TOO_FEW = "none: too few questions"
    """There are fewer than five clusters, and one holds fewer than five questions."""
    ALIKE = "none: in each exam all questions have the same result"
    """There are fewer than five exams, and within each all questions came out the same."""


class Unit(StrEnum):
    """What the number of a measure is."""

    SHARE = "share"
    """A fraction of 1."""
    POINTS = "points"
    """Of an exam."""
    OWN = "own"
    """Whatever a metric of the user's own gives."""


class Measure(FrozenModel):
    """One score of a run, or of a group of its questions."""

    value: float | None
    """None if nothing was scored; no score is not a score of 0."""
    n: int
    """Questions that it comes from."""
    skipped: int | None = None
    """Other questions whose asking did not fail, if it is a metric of the user's own, which may give no score."""
    interval: Interval | None = None
    """95 %: percentiles of 9,999 resamples, or Wilson's where each of at least two questions scores 0 or 1. None where
    the score is no mean over questions."""
    resampled: Resampling = Resampling.CLUSTERS
    """What `interval` resamples, or why it is None."""
    chance: float | None = Field(default=None, exclude=True)
    """What a uniform choice would have; None where that says nothing."""
    unit: Unit = Field(default=Unit.SHARE, exclude=True)


Measures = dict[str, Measure]
"""Name -> measure; the first is the one that a run is known by."""


def _in_own_unit(measures: Measures) -> Measures:
    return {name: measure.model_copy(update={"unit": Unit.OWN}) for name, measure in measures.items()}


OwnMeasures = Annotated[Measures, AfterValidator(_in_own_unit), Field(default_factory=dict)]
"""Name -> what the user's own metric of that name says; empty if there is none."""


class Outcomes(FrozenModel):
    """How questions came out."""

    selected: int
    """Questions asked for: `n + failed + missing`."""
    n: int
    """Questions scored, unanswered ones included."""
    right: int | None = None
    """None if answers are more or less right."""
    wrong: int | None = None
    """None if answers are more or less right."""
    unanswered: int
    """There is no answer that could be read."""
    failed: int
    """The asking failed; the question is pending again."""
    missing: int
    """There is no prediction yet."""


class Scores(Outcomes):
    """Counts and scores of a group of questions. Scores are fractions of 1 unless they say otherwise.

    `n` is the denominator of every rate: the questions that have a scorable prediction. Failed and missing ones are
    left out of all scores and counted on their own. A score is None if `n` is 0: no score is not a score of 0.
    """

    right: int
    wrong: int
    exams: int
    """Exams with at least one scored question."""
    accuracy: float | None
    """`right / n`."""
    accuracy_interval: Interval | None
    """Wilson's interval."""
    chance_accuracy: float | None
    """The accuracy to expect of a uniform choice among each question's options."""
    exam_score: float | None
    """`(right - wrong / 3) / n`: three wrong answers cancel one right one (Correa-Guillén et al. 2025). From -1/3
    to 1."""
    chance_exam_score: float | None
    """The exam score to expect of a uniform choice."""
    points: float | None
    """`3 right - wrong` of an exam, averaged over the exams (Vilares and Gómez-Rodríguez 2019). It grows with the
    number of questions, so that a sample's points cannot be compared with those of whole exams."""
    chance_points: float | None
    """The points to expect of a uniform choice."""
    unanswered_ratio: float | None
    """`unanswered / n`."""

    @property
    def measures(self) -> Measures:
        """The scores, each with its interval where it has one; a run is known by its accuracy."""
        return {
            name: Measure(
                value=getattr(self, name),
                n=self.n,
                interval=getattr(self, f"{name}_interval", None),
                resampled=getattr(self, f"{name}_resampled", Resampling.CLUSTERS),
                chance=getattr(self, f"chance_{name}", None),
                unit=Unit.SHARE if name in ("accuracy", "exam_score", "unanswered_ratio") else Unit.POINTS,
            )
            for name in ("accuracy", "exam_score", "points", "unanswered_ratio", *ExamAverages.model_fields)
            if hasattr(self, name)
        }


class ReadScores(FrozenModel):
    """What counts of a run as its replies are read in one way; failed and missing questions are left out."""

    right: int
    wrong: int
    unanswered: int
    accuracy: float
    """`right / n`."""
    exam_score: float
    """`(right - wrong / 3) / n`, from -1/3 to 1."""
    unanswered_ratio: float
    """`unanswered / n`."""


class PublishedScores(ExamAverages, Scores):
    """With averages over exams as a paper prints them; see `medexam.metrics.exam_averages`."""


class ExamScores(PublishedScores):
    """With intervals of what is no rate of questions."""

    exam_score_interval: Interval | None
    """Percentiles of 9,999 resamples; `exam_score_resampled` says of what."""
    exam_score_resampled: Resampling = Resampling.CLUSTERS
    """What `exam_score_interval` resamples, or why it is None."""
    points_interval: Interval | None
    """Percentiles of 9,999 resamples; `points_resampled` says of what."""
    points_resampled: Resampling = Resampling.CLUSTERS
    """What `points_interval` resamples, or why it is None."""
    unanswered_ratio_interval: Interval | None
    """Wilson's interval."""


class RunMetrics(Outcomes):
    """What the metrics of every benchmark have in common: how questions came out, and what asking them took."""

    found_nothing: int = 0
    """Scored questions whose query found no passage, where `retrieval` of `Metrics` does not count them."""
    prompt_tokens: int | None
    """Sum over the predictions that report it; None if none does."""
    completion_tokens: int | None
    """Sum over the predictions that report it; None if none does."""
    thinking_tokens: int | None = None
    """Those of the completions' that are thinking; None if no prediction reports it."""
    prompt_tokens_counted: int | None = None
    """Predictions that `prompt_tokens` counts. None unless others with a reply do not report them."""
    completion_tokens_counted: int | None = None
    """Predictions that `completion_tokens` counts. None unless others with a reply do not report them."""
    latency_p50_s: float | None
    """Median of the scored predictions' `latency_s`; None if no model was asked."""
    latency_p95_s: float | None
    """95th percentile of the same."""
    answering_p50_s: float | None = None
    """Median of `latency_s` without `waiting_s`. None where no prediction tells them apart."""
    answering_p95_s: float | None = None
    """95th percentile of the same."""
    if TYPE_CHECKING:
        # Each kind of metrics declares it as its last field, so that it stands last in `metrics.json`.
        own: OwnMeasures

        @property
        def measures(self) -> Measures:
            """Over all questions; a run is known by the first."""

    @property
    def complete(self) -> bool:
        """Whether every selected question is scored."""
        return self.n == self.selected

    @property
    def without_passages(self) -> int:
        """Scored questions whose query found no passage."""
        return self.found_nothing


class BrokenDown(RunMetrics, ExamScores):
    """Scores over all questions of a run, and by what they are grouped by."""

    right: int
    wrong: int
    by_exam: dict[str, Scores] = Field(default_factory=dict)
    """Exam name -> scores. In all breakdowns a group stands in the order of its name."""
    by_year: dict[int, Scores] = Field(default_factory=dict)
    by_discipline: dict[str, PublishedScores] = Field(default_factory=dict)
    by_option_count: dict[int, Scores] = Field(default_factory=dict)

    @property
    def by(self) -> dict[str, dict[str, Scores]]:
        """Facet -> group -> its scores."""
        facets = {name: getattr(self, f"by_{name}") for name in ("discipline", "year", "option_count", "exam")}
        return {name: {str(key): scores for key, scores in groups.items()} for name, groups in facets.items() if groups}


class Metrics(EvidenceMeasures, BrokenDown):
    """All scores of one run on questions with numbered options."""

    readings: dict[Reading, ReadScores] | None = None
    """What counts as replies are read strictly, and leniently; None if both are the same."""
    own: OwnMeasures
    """What the user's own metrics say."""


class TaskKind(FrozenModel):
    """What tells the metrics of answers in words from those of exams, in `metrics.json`."""

    kind: Literal["tasks"] = "tasks"


class TaskMetrics(RunMetrics, TaskKind):
    """All scores of one run that answers in words. Failed and missing tasks enter none of them."""

    measures: Measures
    """Over all tasks."""
    by_group: dict[str, Measures]
    """Group of the tasks (format or variant) -> the same over it, in the order of the data."""
    by_subset: dict[str, Measures] = Field(default_factory=dict)
    """A part of the tasks that is worth telling apart -> the same over it."""
    counts: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Group -> what happened to its answers, such as a kind of malformed output -> how often; only what occurs."""
    outcomes: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Group -> kind of `SpanOutcome` -> extracted spans of that kind, if the data hold right answers."""
    settings: dict[str, str | float | int | None] = Field(default_factory=dict)
    """What the scoring itself depends on, such as a baseline and its seed."""
    notes: tuple[str, ...] = ()
    """What is not scored and why, and what a reader should know."""
    own: OwnMeasures
    """What the user's own metrics say."""


M = TypeVar("M", bound=RunMetrics)


@dataclass(frozen=True, slots=True)
class ScoredRun(Generic[M]):
    """The metrics of a run, with the scores that they are means of."""

    metrics: M
    items: Mapping[str, Mapping[str, float]]
    """Measure -> question -> its score, for the measures that are means over questions; what runs are compared by.
    Empty if right or wrong says it all."""
    own: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The scores that the user's own metrics give, by metric."""
