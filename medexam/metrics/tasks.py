"""What every benchmark that is answered in words counts alike: which tasks are scored, and how means get intervals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from medexam.distributions import rate_interval
from medexam.metrics.counting import count_costs
from medexam.metrics.intervals import Found, resample
from medexam.metrics.results import Measure, Measures, Resampling
from medexam.predictions import Prediction, Status
from medexam.questions import Task


def scored_tasks(tasks: Sequence[Task], predictions: Mapping[str, Prediction]) -> list[Task]:
    """Select the tasks with a prediction that has not failed, in order."""
    return [
        task
        for task in tasks
        if (prediction := predictions.get(task.key)) is not None and prediction.status is not Status.FAILED
    ]


def count_tasks(tasks: Sequence[Task], predictions: Mapping[str, Prediction]) -> dict[str, Any]:
    """Count the outcomes and costs of `TaskMetrics`."""
    task_predictions = [predictions.get(task.key) for task in tasks]
    statuses = [prediction.status for prediction in task_predictions if prediction is not None]
    failed = statuses.count(Status.FAILED)
    found_nothing = sum(
        prediction.passages == ()
        for prediction in task_predictions
        if prediction is not None and prediction.status is not Status.FAILED
    )
    return {
        "selected": len(tasks),
        "n": len(statuses) - failed,
        "unanswered": statuses.count(Status.UNANSWERED),
        "failed": failed,
        "missing": len(tasks) - len(statuses),
        **({"found_nothing": found_nothing} if found_nothing else {}),
        **count_costs((task.key for task in tasks), predictions),
    }


def mean_measure(scores: Mapping[str, float], question_of: Callable[[str], str] = str) -> Measure:
    """Compute the mean of the scores of tasks, by key, with its interval.

    `question_of` a task's key names its question: tasks of one question are resampled together. Where every question
    has one task and every score is 0 or 1, the interval is Wilson's; so it is, over questions, where all tasks score 0,
    or all 1.
    """
    if not scores:
        return Measure(value=None, n=0)
    clusters = cluster_scores(scores, question_of)
    interval, over = _interval(clusters)
    return Measure(value=sum(scores.values()) / len(scores), n=len(scores), interval=interval, resampled=over)


def question_of(key: str) -> str:
    """Return the question that a task poses: `SET/test/17` of its variant `SET/test/17/CQ#E`.

    A task without variants is a question of its own.
    """
    question, _, variant = key.rpartition("/")
    return question if "#" in variant else key


def support_measures(
    scores: Mapping[str, float], predictions: Mapping[str, Prediction], name: str
) -> dict[str, Measures]:
    """Map "supported" and "not supported" to the mean, under `name`, of the tasks whose answer was checked by passages.

    Empty if none was checked. A withdrawn answer scores 0.
    """
    subsets = {"supported by passages": True, "not supported": False}
    keys = {label: [key for key in scores if predictions[key].supported is value] for label, value in subsets.items()}
    return {label: {name: mean_measure(select_scores(scores, found))} for label, found in keys.items() if found}


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
