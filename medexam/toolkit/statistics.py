"""Intervals, agreement and scores: pure functions."""

from medexam.metrics.counting import cohens_kappa
from medexam.metrics.intervals import LEVEL, RESAMPLES, SEED
from medexam.metrics.results import Interval
from medexam.metrics.spans import SpanSetScores, score_spans

__all__ = ["LEVEL", "RESAMPLES", "SEED", "Interval", "SpanSetScores", "cohens_kappa", "score_spans"]
