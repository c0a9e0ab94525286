"""Intervals, agreement and scores: pure functions."""

from medexam.metrics.counting import cohens_kappa
from medexam.metrics.intervals import LEVEL, RESAMPLES, SEED
from medexam.metrics.results import Interval

__all__ = ["LEVEL", "RESAMPLES", "SEED", "Interval", "cohens_kappa"]
