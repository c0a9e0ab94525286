"""What `metrics.json` holds, of every benchmark alike: counts, measures, and the same by facet and group.

Only data; the modules beside this one find the numbers. Shares, probabilities and accuracies are fractions of 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import Field

from medexam.frozen_model import FrozenModel
from medexam.model_calls import Reading

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
    ALIKE = "none: every resample has the same result"
    """All that could be drawn came out the same."""


class Unit(StrEnum):
    """What the number of a measure is."""

    SHARE = "share"
    """A fraction of 1."""
    POINTS = "points"
    """Of an exam, or a percentage as a paper prints it."""
    OWN = "own"
    """Whatever a metric of the user's own gives."""


class Measure(FrozenModel):
    """One score of a run, or of a group of its questions."""

    value: float | None = None
    """None if nothing was scored; no score is not a score of 0."""
    n: int = 0
    """Questions that it comes from."""
    skipped: int | None = None
    """Other questions whose asking did not fail, if it is a metric of the user's own, which may give no score."""
    interval: Interval | None = None
    """95 %: percentiles of 9,999 resamples, or Wilson's where each of at least two questions scores 0 or 1. None where
    the score is no mean over questions, and of points and the exam score of a group."""
    resampled: Resampling = Resampling.CLUSTERS
    """What `interval` resamples, or why it is None."""
    chance: float | None = None
    """What a uniform choice among each question's options would have; None without options."""
    unit: Unit = Unit.SHARE


Measures = dict[str, Measure]
"""Name -> measure; the first is the one that a run is known by."""
ItemScores = Mapping[str, Mapping[str, float]]
"""Measure -> question -> its score; a question without a score is left out."""


class Scores(FrozenModel):
    """How the questions of a run or a group came out, and their measures.

    `n` is the denominator of every rate: the questions that have a scorable prediction. Failed and missing ones are
    left out of all measures and counted on their own.
    """

    selected: int
    """Questions asked for: `n + failed + missing`."""
    n: int
    """Questions scored, unanswered ones included."""
    right: int | None = None
    wrong: int | None = None
    """None if answers are more or less right."""
    unanswered: int
    """There is no answer that could be read."""
    failed: int
    """The asking failed; the question is pending again."""
    missing: int
    """There is no prediction yet."""
    exams: int | None = None
    """Exams with at least one scored question; None where the data set declares no exams."""
    measures: Measures
    """Of questions with numbered options: `accuracy`, `right / n` with Wilson's interval; `unanswered_ratio`. Where a
    data set declares what a wrong answer costs, `exam_score`: `(right - penalty wrong) / n` (Correa-Guillén et al.
    2025), from -1/3 to 1 at the Spanish boards. Where it declares exams too, `points`: `3 right - wrong` of an exam,
    averaged over the exams (Vilares and Gómez-Rodríguez 2019), which grow with the number of questions. Of HEAD-QA,
    `headqa_v1_accuracy` and `headqa_v1_points`, see `medexam.measures.scoring`."""

    def measure(self, name: str) -> Measure:
        """Return a measure; one without a value where the data set declares none of the name."""
        return self.measures.get(name) or Measure()


class Metrics(Scores):
    """All scores of one run. Failed and missing questions enter none of them."""

    by: dict[str, dict[str, Scores]] = Field(default_factory=dict)
    """Facet -> group -> its scores. Facets of exams are `discipline`, `year`, `option_count` and `exam`, of answers in
    words `group` (format or variant) and `subset` (a part that is worth telling apart)."""
    evidence: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Kind of evidence -> its figures; see `medexam.measures.evidence`."""
    readings: dict[Reading, Scores] | None = None
    """What counts as replies are read strictly, and leniently; None if both are the same."""
    without_passages: int = 0
    """Scored questions whose query found no passage."""
    tallies: dict[str, dict[str, dict[str, int]]] = Field(default_factory=dict)
    """What is counted of answers -> group -> kind -> how often, such as kinds of malformed output; only what occurs."""
    settings: dict[str, str | float | int | None] = Field(default_factory=dict)
    """What the scoring itself depends on, such as a baseline and its seed."""
    notes: tuple[str, ...] = ()
    """What is not scored and why, and what a reader should know."""
    own: Measures = Field(default_factory=dict)
    """What the user's own metrics say."""
    prompt_tokens: int | None
    completion_tokens: int | None
    """Sums over the predictions that report them; None if none does."""
    thinking_tokens: int | None = None
    """Those of the completions' that are thinking; None if no prediction reports it."""
    prompt_tokens_counted: int | None = None
    completion_tokens_counted: int | None = None
    """Predictions that these sums count. None unless others with a reply do not report them."""
    cost_usd: float | None = None
    """US dollars of the predictions; None unless that of each call is known whose tokens are."""
    latency_p50_s: float | None
    latency_p95_s: float | None
    """Median and 95th percentile of the scored predictions' `latency_s`; None if no model was asked."""

    @property
    def complete(self) -> bool:
        """Whether every selected question is scored."""
        return self.n == self.selected


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """The metrics of a run, with the scores that they are means of."""

    metrics: Metrics
    items: ItemScores
    """Those of the measures that are means over questions; what runs are compared by. Empty if right or wrong says it
    all."""
    own: ItemScores = field(default_factory=dict)
    """The scores that the user's own metrics give."""
