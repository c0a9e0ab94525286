"""What every benchmark that is answered in words counts alike: which tasks are scored, and how means get intervals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from medexam.distributions import rate_interval
from medexam.measures.counting import count_costs
from medexam.measures.intervals import Found, resample
from medexam.measures.results import Measure, Measures, Metrics, Resampling, Scores
from medexam.predictions import Prediction, Status
from medexam.questions import Task


def scored_tasks(tasks: Sequence[Task], predictions: Mapping[str, Prediction]) -> list[Task]:
    """Select the tasks with a prediction that has not failed, in order."""
    return [
        task
        for task in tasks
        if (prediction := predictions.get(task.key)) is not None and prediction.status is not Status.FAILED
    ]


def group_tasks(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Map each group to its tasks, both in the order of the data."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.group, []).append(task)
    return groups


def task_scores(tasks: Sequence[Task], predictions: Mapping[str, Prediction], measures: Measures) -> Scores:
    """Count how these tasks came out, beside their measures."""
    task_predictions = [predictions.get(task.key) for task in tasks]
    statuses = [prediction.status for prediction in task_predictions if prediction is not None]
    failed = statuses.count(Status.FAILED)
    return Scores(
        selected=len(tasks),
        n=len(statuses) - failed,
        unanswered=statuses.count(Status.UNANSWERED),
        failed=failed,
        missing=len(tasks) - len(statuses),
        measures=measures,
    )


def task_metrics(
    tasks: Sequence[Task],
    predictions: Mapping[str, Prediction],
    measures: Measures,
    by: Mapping[str, Mapping[str, Scores]],
    **more: Any,
) -> Metrics:
    """Count outcomes and costs beside measures; facets without a group are left out. `more` are fields of `Metrics`."""
    return Metrics(
        **dict(task_scores(tasks, predictions, measures)),
        by={facet: dict(groups) for facet, groups in by.items() if groups},
        **count_costs((task.key for task in tasks), predictions),
        **more,
    )


def mean_measure(scores: Mapping[str, float], question_of: Callable[[str], str] = str) -> Measure:
    """Compute the mean of the scores of tasks, by key, with its interval.

    `question_of` a task's key names its question: tasks of one question are resampled together. Where every question
    has one task and every score is 0 or 1, the interval is Wilson's; so it is, over questions, where all tasks score 0,
    or all 1.
    """
    if not scores:
        return Measure()
    clusters = cluster_scores(scores, question_of)
    interval, over = _interval(clusters)
    return Measure(value=sum(scores.values()) / len(scores), n=len(scores), interval=interval, resampled=over)


def question_of(key: str) -> str:
    """Return the question that a task poses: `SET/test/17` of its variant `SET/test/17/CQ#E`.

    A task without variants is a question of its own.
    """
    question, _, variant = key.rpartition("/")
    return question if "#" in variant else key


def split_by_support(tasks: Sequence[Task], predictions: Mapping[str, Prediction]) -> dict[str, list[Task]]:
    """Map "supported by passages" and "not supported" to the tasks whose answer was checked by passages.

    Empty if none was checked. A withdrawn answer is not supported.
    """
    subsets = {"supported by passages": True, "not supported": False}
    scored = scored_tasks(tasks, predictions)
    parts = {
        name: [task for task in scored if predictions[task.key].supported is value] for name, value in subsets.items()
    }
    return {name: part for name, part in parts.items() if part}


def cluster_scores(scores: Mapping[str, float], question_of: Callable[[str], str]) -> list[list[float]]:
    """Group the scores of tasks, by key, in a list for each question; both in the order in which they first appear."""
    clusters: dict[str, list[float]] = {}
    for key, score in scores.items():
        clusters.setdefault(question_of(key), []).append(score)
    return list(clusters.values())


def select_scores(scores: Mapping[str, float], keys: Iterable[str]) -> dict[str, float]:
    """Select the scores of those of `keys` that have one."""
    return {key: scores[key] for key in keys if key in scores}


def resample_clusters(clusters: Sequence[Sequence[float]]) -> Found:
    """Find the bootstrap interval of the mean over all tasks, whose scores stand in a list for each question or exam.

    With fewer than five of them each needs five scores, as exams have and variants of a question have not.
    """
    sums = np.array([[sum(each), len(each)] for each in clusters], dtype=float).reshape(-1, 2)
    return resample(sums, lambda: [np.array([each]).T for each in clusters], _pooled_mean, 1)[0]


def _interval(clusters: Sequence[Sequence[float]]) -> Found:
    scores = {score for each in clusters for score in each}
    apart = len(scores) == 1 or all(len(each) == 1 for each in clusters)
    if len(clusters) > 1 and apart and scores <= {0.0, 1.0}:
        return rate_interval(round(sum(each[0] for each in clusters)), len(clusters)), Resampling.CLUSTERS
    return resample_clusters(clusters)


def _pooled_mean(total: Any, n: Any, clusters: int) -> Any:  # noqa: ARG001
    return np.stack([total / n])
