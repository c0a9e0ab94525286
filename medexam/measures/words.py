"""What all questions that are answered in words count alike: which are scored, and how means get intervals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from medexam.distributions import rate_interval
from medexam.measures.counting import count_costs
from medexam.measures.intervals import number_as_seen, resample
from medexam.measures.results import Measure, Measures, Metrics, Resampling, Scores
from medexam.predictions import Prediction, Status
from medexam.questions import ItemT, Task


def scored_items(items: Iterable[ItemT], predictions: Mapping[str, Prediction]) -> list[ItemT]:
    """Select the items with a prediction that has not failed, in order."""
    pairs = ((item, predictions.get(item.key)) for item in items)
    return [item for item, prediction in pairs if prediction is not None and prediction.status is not Status.FAILED]


def group_tasks(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Map each group to its tasks, both in the order of the data."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.group, []).append(task)
    return groups


def task_scores(tasks: Sequence[Task], predictions: Mapping[str, Prediction], measures: Measures) -> Scores:
    """Count how these tasks came out, beside their measures."""
    statuses = [prediction.status for task in tasks if (prediction := predictions.get(task.key)) is not None]
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
        **count_costs(filter(None, (predictions.get(task.key) for task in tasks))),
        **more,
    )


def mean_measure(scores: Mapping[str, float], cluster_of: Callable[[str], str] = str) -> Measure:
    """Compute the mean of the scores of items, by key, with its interval.

    `cluster_of` an item's key names what it is resampled with, such as the question that a task is a variant of. Where
    every cluster has one item and every score is 0 or 1, the interval is Wilson's; so it is, over clusters, where all
    items score 0, or all 1.
    """
    if not scores:
        return Measure()
    clusters = number_as_seen(list(map(cluster_of, scores)))
    values, count = np.fromiter(scores.values(), float, len(scores)), int(clusters.max()) + 1
    distinct = set(scores.values())
    mean = Measure(value=sum(scores.values()) / len(scores), n=len(scores))
    if count > 1 and distinct <= {0.0, 1.0} and (len(distinct) == 1 or count == len(scores)):
        successes = count * int(values[0]) if len(distinct) == 1 else round(values.sum())
        return mean.model_copy(update={"interval": rate_interval(successes, count), "resampled": Resampling.CLUSTERS})
    ((interval, over),) = resample(values[:, None], clusters)
    return mean.model_copy(update={"interval": interval, "resampled": over})


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
    parts: dict[str, list[Task]] = {"supported by passages": [], "not supported": []}
    for task in scored_items(tasks, predictions):
        if (supported := predictions[task.key].supported) is not None:
            parts["supported by passages" if supported else "not supported"].append(task)
    return {name: part for name, part in parts.items() if part}
