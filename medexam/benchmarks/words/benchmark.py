"""Questions that are answered in words: what all such benchmarks have in common."""

from abc import abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from medexam.benchmarks.answers import RunAnswers
from medexam.benchmarks.base import Benchmark, Predictions, Scores
from medexam.benchmarks.words import tables
from medexam.benchmarks.words.comparison import PairedMeasures, compare_tasks
from medexam.datasets import load_task_set
from medexam.metrics import ScoredRun
from medexam.metrics.results import Measures, TaskMetrics
from medexam.metrics.tasks import count_tasks, mean_measure, question_of
from medexam.predictions import Prediction
from medexam.predictions.evidence.failures import FAILURES
from medexam.predictions.evidence.kinds import evidence_columns
from medexam.questions import Task, TaskGold, TaskSet
from medexam.specs import DatasetSpec
from medexam.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


class WordsBenchmark(Benchmark[Task, Mapping[str, TaskGold], TaskMetrics]):
    """Tasks in groups (formats or variants), scored by measures that are means over tasks."""

    metrics_type = TaskMetrics
    facets = MappingProxyType({"group": "Group"})
    report_each = True
    overview = staticmethod(tables.measures_by_run)
    headline = staticmethod(tables.overall_measures)
    name_measure = staticmethod(tables.name_measure)
    values = staticmethod(tables.task_values)

    def __init__(self, name: str) -> None:
        self.name = self.family = name

    def legend(self, metrics: Sequence[TaskMetrics]) -> str:
        """Explain how to read tables of runs, whatever their metrics."""
        return tables.LEGEND

    def load(self, spec: DatasetSpec) -> TaskSet:
        """Load the tasks that `spec` selects; raises as `load_task_set` does."""
        return load_task_set(spec)

    @abstractmethod
    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun[TaskMetrics]:
        """Score the predictions on all tasks of the set, by key."""

    def score_means(self, items: TaskSet, predictions: Predictions, scores: Scores) -> ScoredRun[TaskMetrics]:
        """Return the run whose measures are means of `scores` (measure to task to score), in all and by group."""
        groups: dict[str, set[str]] = {}
        for task in items.questions:
            groups.setdefault(task.group, set()).add(task.key)

        def means(keys: Container[str]) -> Measures:
            parts = {name: {key: each[key] for key in each if key in keys} for name, each in scores.items()}
            return {name: mean_measure(part, question_of) for name, part in parts.items() if part}

        metrics = TaskMetrics(
            **count_tasks(items.questions, predictions),
            measures=means({task.key for task in items.questions}),
            by_group={group: means(keys) for group, keys in groups.items()},
            own={},
        )
        return ScoredRun(metrics, scores)

    def cluster(self, item: Task) -> str:
        """Return the whole question that a task is a variant of."""
        return question_of(item.key)

    def expected(self, gold: TaskGold) -> list[str]:
        """Return the right answer's texts."""
        return list(gold.answers)

    def columns(self, items: Mapping[str, Any]) -> "list[tuple[str, pa.DataType]]":
        """List group, gold and answer of each task; then one column for each measure that is a mean over tasks."""
        import pyarrow as pa

        names = (
            *("question", "group", "language", "gold", "program", "model", "status", "reason", "text", "start", "end"),
            *("alignment", "reply", "prompt_tokens", "completion_tokens", "latency_s", "finish_reason"),
        )
        types = dict.fromkeys(names, pa.string()) | {"gold": pa.list_(pa.string()), "latency_s": pa.float64()}
        types |= dict.fromkeys(("start", "end"), pa.int32())
        types |= dict.fromkeys(("prompt_tokens", "completion_tokens"), pa.int64())
        types |= evidence_columns([FAILURES])
        return [*types.items(), *((f"score_{name}", pa.float64()) for name in items)]

    def row(
        self, item: Task, gold: TaskGold, prediction: Prediction, items: Mapping[str, Mapping[str, float]]
    ) -> dict[str, Any]:
        """Return the values of `columns` for one task; a score is None if the task has none."""
        return {
            "group": item.group,
            "language": item.language,
            "gold": self.expected(gold),
            **{f"score_{name}": scores.get(item.key) for name, scores in items.items()},
        }

    def place(self, item: Task) -> dict[str, Any]:
        """Return the task's format or variant."""
        return {"group": item.group}

    def wording(self, item: Task, gold: TaskGold) -> dict[str, Any]:
        """Return the question, what else is shown with it, and what is expected."""
        return {"stem": item.question, "shown": [list(pair) for pair in _shown(item, gold)]}

    def item_scores(self, items: TaskSet, predictions: Predictions) -> Scores:
        """Return the scores of each measure that is a mean over tasks."""
        return self.score(items, predictions).items

    def breakdowns(self, metrics: TaskMetrics, *, published: bool) -> list[Table]:
        """Show the measures by group and by subset, and what happened to the answers."""
        return tables.measure_group_tables(metrics)

    def notes(self, metrics: TaskMetrics) -> tuple[str, ...]:
        """Return what is not scored and why."""
        return metrics.notes

    def size(self, metrics: TaskMetrics) -> dict[str, int]:
        """Count the groups."""
        return {"groups": len(metrics.by_group)}

    def compare(self, items: TaskSet, sets: Sequence[TaskSet], runs: Sequence[RunAnswers]) -> PairedMeasures:
        """Compare each measure over whole questions, and the first by group; a run is scored on its own set."""
        keys = [task.key for task in items.questions]
        scored = [self.score(task_set.only(keys), run) for task_set, run in zip(sets, runs, strict=True)]
        return compare_tasks(items.questions, scored)


def _shown(task: Task, gold: TaskGold) -> Iterator[tuple[str, str]]:
    """Yield what is shown with the question, then what is expected."""
    if task.context:
        yield "Context", task.context
    if task.options:
        yield "Options", "\n".join(task.options)
    if task.given_answer:
        yield "Answer that is shown", task.given_answer
    if task.given_reasoning:
        yield "Reasoning that is shown", "\n".join(task.given_reasoning)
    texts = (
        gold.incorrect_explanation,
        "\n".join(gold.incorrect_step),
        "" if task.given_answer else "\n".join(gold.answers),
    )
    for text in filter(None, texts):
        yield "Expected", text
    if gold.components:
        yield "Argument components", "\n".join(f"{c.label}: {task.context[c.start : c.end]}" for c in gold.components)
