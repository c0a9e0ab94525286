"""Extraction: the part of a text that answers a question, scored by its overlap with the right one."""

from medexam.benchmarks.base import Predictions
from medexam.benchmarks.words.benchmark import WordsBenchmark
from medexam.items import TaskSet
from medexam.metrics import ScoredRun, TaskMetrics
from medexam.metrics.extraction import score_extraction


class SpanBenchmark(WordsBenchmark):
    """F1 and exact match as SQuAD defines them, and overlap with argument components."""

    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun[TaskMetrics]:
        """Score the quoted parts."""
        return score_extraction(items.questions, items.golds, predictions)
