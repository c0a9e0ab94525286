"""Questions that are answered in words: parts of a text, short answers, and examples with a metric of their own."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from medexam.datasets import load_task_set
from medexam.datasets.examples import load_example_set
from medexam.measures.benchmarks.base import USAGE, Benchmark, Predictions
from medexam.measures.results import ItemScores, ScoredRun, Scores
from medexam.measures.words import (
    group_tasks,
    mean_measure,
    question_of,
    score_span,
    scored_items,
    split_by_support,
    task_metrics,
    task_scores,
)
from medexam.predictions import Prediction
from medexam.questions import Task, TaskGold, TaskSet
from medexam.specs import DatasetSpec
from medexam.text import plain_letters

_NAMES_OPTIONS = re.compile(
    r"\b(following|of (these|those)|options?|statements?|siguientes?|opcion(es)?|afirmacion(es)?|senale|indique"
    r"|seguintes?|opcions?|afirmacions?|sinale|seguent[ei]|opzion[ei]|affermazion[ei]|indichi"
    r"|следующ\w*|перечислен\w*|утвержден\w*|вариант\w*|укажите)\b"
)


class WordsBenchmark(Benchmark[Task, Mapping[str, TaskGold]]):
    """Tasks in groups (formats or variants), scored by measures that are means over tasks.

    A subclass says how one answer is scored; an unanswered one is scored too, a failed or missing one is not.
    """

    facets = MappingProxyType({"group": "Group"})
    columns = MappingProxyType(
        {
            **dict.fromkeys(("question", "group", "language"), "string"),
            "gold": "[string]",
            **dict.fromkeys(("program", "model", "status", "reason", "text", "alignment", "reply"), "string"),
            **dict.fromkeys(("start", "end"), "int32"),
            **USAGE,
            **dict.fromkeys(("failure_kind", "failure_message"), "string"),
        }
    )

    def __init__(self, name: str) -> None:
        self.name = self.family = name

    def load(self, spec: DatasetSpec) -> TaskSet:
        """Load the tasks that `spec` selects; raises as `load_task_set` does."""
        return load_task_set(spec)

    def score_item(self, item: Task, gold: TaskGold, prediction: Prediction) -> Mapping[str, float]:
        """Map each measure to the score of one answer; the first measure is the one that runs are known by."""
        raise NotImplementedError(f"{type(self).__name__} has neither score_item nor score")

    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun:
        """Score the predictions on all tasks of the set, by key."""
        scores: dict[str, dict[str, float]] = {}
        for task in scored_items(items.questions, predictions):
            for name, value in self.score_item(task, items.golds[task.key], predictions[task.key]).items():
                scores.setdefault(name, {})[task.key] = value
        return self.score_means(items, predictions, scores, **self.details(items, predictions))

    def details(self, items: TaskSet, predictions: Predictions) -> dict[str, Any]:
        """Return further fields of `Metrics`, such as `tallies` and `notes`."""
        return {}

    def score_means(self, items: TaskSet, predictions: Predictions, scores: ItemScores, **more: Any) -> ScoredRun:
        """Return the run whose measures are means of `scores` (measure to task to score), in all and by facet.

        Facets are the groups, and subsets that are worth telling apart. `more` are fields of `Metrics`.
        """

        def score_some(tasks: Sequence[Task]) -> Scores:
            parts = {
                name: {task.key: each[task.key] for task in tasks if task.key in each} for name, each in scores.items()
            }
            measures = {name: mean_measure(part, question_of) for name, part in parts.items()}
            return task_scores(tasks, predictions, measures)

        tasks = items.questions
        by = {
            facet: {name: score_some(some) for name, some in groups.items() if some}
            for facet, groups in (("group", group_tasks(tasks)), ("subset", self.subsets(items, predictions)))
        }
        return ScoredRun(task_metrics(tasks, predictions, score_some(tasks).measures, by, **more), scores)

    def subsets(self, items: TaskSet, predictions: Predictions) -> dict[str, list[Task]]:
        """Map names to the tasks that a reader may want to look at alone; one without a task is not shown."""
        return split_by_support(items.questions, predictions)

    def cluster(self, item: Task) -> str:
        """Return the whole question that a task is a variant of."""
        return question_of(item.key)

    def expected(self, gold: TaskGold) -> list[str]:
        """Return the right answer's texts."""
        return list(gold.answers)

    def place(self, item: Task) -> dict[str, Any]:
        """Return the task's format or variant."""
        return {"group": item.group}

    def wording(self, item: Task, gold: TaskGold) -> dict[str, Any]:
        """Return the question, what else is shown with it, and what is expected."""
        return {"stem": item.question, "shown": [list(pair) for pair in _shown(item, gold)]}


def _shown(task: Task, gold: TaskGold) -> Iterator[tuple[str, str]]:
    texts = (
        ("Context", task.context),
        ("Options", "\n".join(task.options)),
        ("Answer that is shown", task.given_answer),
        ("Reasoning that is shown", "\n".join(task.given_reasoning)),
        ("Expected", gold.incorrect_explanation),
        ("Expected", "\n".join(gold.incorrect_step)),
        ("Expected", "" if task.given_answer else "\n".join(gold.answers)),
        ("Argument components", "\n".join(f"{c.label}: {task.context[c.start : c.end]}" for c in gold.components)),
    )
    yield from ((name, text) for name, text in texts if text)


class ShortAnswerBenchmark(WordsBenchmark):
    """F1 and exact match as SQuAD defines them, the best over all right answers; by the Spanish rule too in Spanish."""

    def details(self, items: TaskSet, predictions: Predictions) -> dict[str, Any]:
        """Count by group why answers are none or needed mending."""
        counts = {}
        for group, tasks in group_tasks(items.questions).items():
            answers = [predictions[task.key] for task in scored_items(tasks, predictions)]
            counts[group] = dict(Counter(kind for each in answers if (kind := each.alignment or each.reason)))
        counts = {group: each for group, each in counts.items() if each}
        return {"tallies": {"Answers": counts} if counts else {}}

    def score_item(self, item: Task, gold: TaskGold, prediction: Prediction) -> dict[str, float]:
        """Compare the answer's words with the right ones."""
        return compare_words(gold, prediction, spanish=item.language == "es")


class SpanBenchmark(ShortAnswerBenchmark):
    """The same of parts of a text, by both rules, with precision and recall over words.

    Always: `quoted`, the share of answers that stand in the context, and `literal`, that of those without mending.
    """

    def score_item(self, item: Task, gold: TaskGold, prediction: Prediction) -> dict[str, float]:
        """Compare the quoted part with the right ones, if the data hold any."""
        scores = {}
        if gold.answers:
            _, _, precision, recall = score_span(prediction.text or "", gold.answers)
            scores = compare_words(gold, prediction, spanish=True) | {"precision": precision, "recall": recall}
        literal = prediction.alignment == "literal"
        return scores | {"quoted": float(prediction.span is not None), "literal": float(literal)}


class OpenExamBenchmark(ShortAnswerBenchmark):
    """Exam questions without their options: F1 and exact match against the right option's text."""

    def subsets(self, items: TaskSet, predictions: Predictions) -> dict[str, list[Task]]:
        """Map the same names, and `whole questions`, which can be answered without options."""
        questions = [
            task
            for task in items.questions
            if task.question.rstrip(" \"'»”)").endswith("?") and not _NAMES_OPTIONS.search(plain_letters(task.question))
        ]
        return {"whole questions": questions} | super().subsets(items, predictions)


class ExampleBenchmark(WordsBenchmark):
    """Examples of a `medexam.Evaluate`: its metric scored each answer as it came, and a run's score is the mean.

    An example whose reply could not be read scores 0 unless the metric says more.
    """

    def load(self, spec: DatasetSpec) -> TaskSet:
        """Load the examples in the run's folder; raises `DatasetError` if the file is missing or damaged."""
        return load_example_set(spec)

    def score(self, items: TaskSet, predictions: Predictions) -> ScoredRun:
        """Average the scores that the metric gave."""
        stored = {task.key: predictions[task.key].metric_score for task in scored_items(items.questions, predictions)}
        name = next((score.metric for score in stored.values() if score is not None), "score")
        scores = {key: 0.0 if score is None else float(score.value) for key, score in stored.items()}
        metrics = task_metrics(items.questions, predictions, {name: mean_measure(scores)}, {})
        return ScoredRun(metrics, {name: scores})


def compare_words(gold: TaskGold, prediction: Prediction, *, spanish: bool) -> dict[str, float]:
    """Compare the answer's words with the right ones by SQuAD's rule, and with `spanish` by the Spanish one too."""
    scores = score_span(prediction.text or "", gold.answers)
    measures = {"f1": scores.f1, "exact_match": scores.exact_match}
    if spanish:
        scores = score_span(prediction.text or "", gold.answers, "spanish")
        measures |= {"f1_spanish": scores.f1, "exact_match_spanish": scores.exact_match}
    return measures
