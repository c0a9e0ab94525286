"""Intervals, agreement and scores: pure functions."""

from medexam.distributions import LEVEL
from medexam.metrics.counting import Tally, cohens_kappa
from medexam.metrics.exam_averages import AVERAGES
from medexam.metrics.intervals import FEWEST, RESAMPLES, SEED, resample
from medexam.metrics.results import Interval, Resampling
from medexam.metrics.span_outcomes import count_outcomes
from medexam.metrics.spans import SpanSetScores, score_spans

__all__ = [
    "AVERAGES",
    "FEWEST",
    "LEVEL",
    "RESAMPLES",
    "SEED",
    "Interval",
    "Resampling",
    "SpanSetScores",
    "Tally",
    "cohens_kappa",
    "count_outcomes",
    "resample",
    "score_spans",
]
