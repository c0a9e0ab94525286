"""What a benchmark of one's own is made of: its base classes, measures, and how means over items are counted."""

from medexam.benchmarks.base import Predictions
from medexam.benchmarks.words.benchmark import WordsBenchmark
from medexam.metrics import ScoredRun, TaskMetrics
from medexam.metrics.results import Measure
from medexam.metrics.tasks import count_tasks, mean_measure, scored_tasks

__all__ = [
    "Measure",
    "Predictions",
    "ScoredRun",
    "TaskMetrics",
    "WordsBenchmark",
    "count_tasks",
    "mean_measure",
    "scored_tasks",
]
