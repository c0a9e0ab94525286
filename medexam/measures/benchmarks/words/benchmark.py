"""Questions that are answered in words: what all such benchmarks have in common."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from medexam.datasets import load_task_set
from medexam.measures import ScoredRun
from medexam.measures.benchmarks.base import Benchmark, ItemScores, Predictions
from medexam.measures.results import Scores
from medexam.measures.tasks import group_tasks, mean_measure, question_of, task_metrics, task_scores
from medexam.predictions import Prediction
from medexam.questions import Task, TaskGold, TaskSet
from medexam.specs import DatasetSpec

if TYPE_CHECKING:
    import pyarrow as pa


class WordsBenchmark(Benchmark[Task, Mapping[str, TaskGold]]):
    """Tasks in groups (formats or variants), scored by measures that are means over tasks."""

    facets = MappingProxyType({"group": "Group"})
    report_each = True

    def __init__(self, name: str) -> None:
        self.name = self.family = name

    def load(self, spec: DatasetSpec) -> TaskSet:
        """Load the tasks that `spec` selects; raises as `load_task_set` does."""
        return load_task_set(spec)

    @abstractmethod
    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun:
        """Score the predictions on all tasks of the set, by key."""

    def score_means(self, items: TaskSet, predictions: Predictions, scores: ItemScores) -> ScoredRun:
        """Return the run whose measures are means of `scores` (measure to task to score), in all and by group."""

        def means(tasks: Sequence[Task]) -> Scores:
            keys = {task.key for task in tasks}
            parts = {name: {key: each[key] for key in each if key in keys} for name, each in scores.items()}
            measures = {name: mean_measure(part, question_of) for name, part in parts.items() if part}
            return task_scores(tasks, predictions, measures)

        groups = {group: means(tasks) for group, tasks in group_tasks(items.questions).items()}
        measures = means(items.questions).measures
        return ScoredRun(task_metrics(items.questions, predictions, measures, {"group": groups}), scores)

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
            *("failure_kind", "failure_message"),
        )
        types = dict.fromkeys(names, pa.string()) | {"gold": pa.list_(pa.string()), "latency_s": pa.float64()}
        types |= dict.fromkeys(("start", "end"), pa.int32())
        types |= dict.fromkeys(("prompt_tokens", "completion_tokens"), pa.int64())
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

    def item_scores(self, items: TaskSet, predictions: Predictions) -> ItemScores:
        """Return the scores of each measure that is a mean over tasks."""
        return self.score(items, predictions).items


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
