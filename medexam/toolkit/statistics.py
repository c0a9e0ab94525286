"""Intervals, agreement and scores: pure functions."""

from medexam.distributions import LEVEL
from medexam.metrics.counting import Tally, cohens_kappa
from medexam.metrics.exam_averages import AVERAGES
from medexam.metrics.intervals import RESAMPLES, SEED
from medexam.metrics.results import Interval
from medexam.metrics.span_outcomes import count_outcomes
from medexam.metrics.spans import SpanSetScores, score_spans

__all__ = [
    "AVERAGES",
    "LEVEL",
    "RESAMPLES",
    "SEED",
    "Interval",
    "SpanSetScores",
    "Tally",
    "cohens_kappa",
    "count_outcomes",
    "score_spans",
]
