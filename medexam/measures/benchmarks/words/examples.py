"""Examples of a `medexam.Evaluate`: its metric scored each answer as it came, and a run's score is the mean."""

from medexam.datasets.examples import load_example_set
from medexam.measures import ScoredRun
from medexam.measures.benchmarks.base import Predictions
from medexam.measures.benchmarks.words.benchmark import WordsBenchmark
from medexam.measures.tasks import mean_measure, scored_tasks, task_metrics
from medexam.questions import TaskSet
from medexam.specs import DatasetSpec

UNNAMED = "score"
"""The measure's name before an answer tells the metric's."""


class ExampleBenchmark(WordsBenchmark):
    """The mean of the stored scores; an example whose reply could not be read scores 0 unless the metric says more."""

    def load(self, spec: DatasetSpec) -> TaskSet:
        """Load the examples in the run's folder; raises `DatasetError` if the file is missing or damaged."""
        return load_example_set(spec)

    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun:
        """Average the scores that the metric gave."""
        tasks = scored_tasks(items.questions, predictions)
        stored = {task.key: predictions[task.key].metric_score for task in tasks}
        name = next((score.metric for score in stored.values() if score is not None), UNNAMED)
        scores = {key: 0.0 if score is None else float(score.value) for key, score in stored.items()}
        metrics = task_metrics(items.questions, predictions, {name: mean_measure(scores)}, {})
        return ScoredRun(metrics, {name: scores})
