"""What a benchmark is made of: rows of its data set, where its files lie, and measures that count as all others do."""

from medexam.benchmarks.base import Predictions
from medexam.benchmarks.words.benchmark import WordsBenchmark
from medexam.datasets.explanations import ExplanationStatistics, sentence_shares
from medexam.datasets.locating import locate_files
from medexam.datasets.rows import Reading, Row, TaskReading, TaskRow
from medexam.metrics import ScoredRun
from medexam.metrics.results import Measure, Measures, TaskMetrics
from medexam.metrics.tasks import count_tasks, mean_measure, scored_tasks, support_measures
from medexam.questions import Component, Option
from medexam.text import option_letters

__all__ = [
    "Component",
    "ExplanationStatistics",
    "Measure",
    "Measures",
    "Option",
    "Predictions",
    "Reading",
    "Row",
    "ScoredRun",
    "TaskMetrics",
    "TaskReading",
    "TaskRow",
    "WordsBenchmark",
    "count_tasks",
    "locate_files",
    "mean_measure",
    "option_letters",
    "scored_tasks",
    "sentence_shares",
    "support_measures",
]
