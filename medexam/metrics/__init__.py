"""Scores of exam answers: pure functions over questions, golds and predictions; floor 2."""

from medexam.metrics.results import Interval, Metrics, PublishedScores, ScoredRun, Scores, TaskMetrics
from medexam.metrics.scoring import compute_metrics
from medexam.predictions.evidence.option_statistics import OptionScoreMetrics

__all__ = [
    "Interval",
    "Metrics",
    "OptionScoreMetrics",
    "PublishedScores",
    "ScoredRun",
    "Scores",
    "TaskMetrics",
    "compute_metrics",
]
