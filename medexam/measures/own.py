"""Metrics of the user's own: functions of question, gold and prediction, whose means stand beside the benchmark's.

A function returns a number, a bool, a mapping of names to these, or None for no score. Nothing here knows where a
function comes from, or how its questions are asked.
"""

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from medexam.errors import SpecError
from medexam.measures.results import ItemScores, Measure, Unit
from medexam.measures.words import mean_measure, scored_items
from medexam.plugins import load_object
from medexam.predictions import Prediction
from medexam.questions import AnySet
from medexam.specs.base import OWN_METRICS, short_name
from medexam.text import writable

Metric = Callable[[Any, Any, Prediction], Any]


def load_metric(name: str) -> Metric:
    """Load the function that `name` means; raises `SpecError` if there is none."""
    candidate: Any = load_object(name, OWN_METRICS)
    if not callable(candidate):
        raise SpecError(f"metric {name} is {type(candidate).__name__}, not a function of question, gold and prediction")
    metric: Metric = candidate
    return metric


def own_scores(name: str, metric: Metric, items: AnySet, predictions: Mapping[str, Prediction]) -> ItemScores:
    """Score every question that has a scorable prediction by `metric`; a mapping's entry is called `metric.entry`.

    Raises `SpecError`, naming metric, question and exception, if it raises one or returns something else than a score.
    """
    metric_name = short_name(name)
    scores: dict[str, dict[str, float]] = {metric_name: {}}
    for item in scored_items(items.questions, predictions):
        try:
            output = metric(item, items.golds[item.key], predictions[item.key])
        except Exception as error:
            raise SpecError(
                f"metric {metric_name} failed on question {item.key}: {type(error).__name__}: "
                f"{' '.join(str(error).split())}; the answers are kept: correct the metric, then run the spec "
                "again"
            ) from error
        entries = {metric_name: output}
        if isinstance(output, Mapping):
            entries = {f"{metric_name}.{writable(str(entry))}": score for entry, score in output.items()}
        for entry, score in entries.items():
            if score is not None:
                scores.setdefault(entry, {})[item.key] = _number(score, metric_name, item.key)
    if not scores[metric_name] and len(scores) > 1:
        del scores[metric_name]
    return scores


def own_measure(scores: Mapping[str, float], keys: list[str], cluster_of: Mapping[str, str]) -> Measure:
    """Compute the mean of `scores` over those of `keys` that have one; the interval resamples clusters.

    `cluster_of` maps a question to what it is resampled with; questions alone are resampled if all are of one cluster.
    """
    subset = {key: scores[key] for key in keys if key in scores}
    tells = len({cluster_of[key] for key in subset}) > 1
    mean = mean_measure(subset, cluster_of.__getitem__ if tells else str)
    return mean.model_copy(update={"skipped": len(keys) - mean.n, "unit": Unit.OWN})


def _number(score: Any, metric_name: str, key: str) -> float:
    # A bool of numpy is no number to Python.
    value = score.item() if type(score).__module__ == "numpy" else score
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    raise SpecError(
        f"metric {metric_name} returned {score!r} for question {key}: return a finite number, a bool, a mapping of "
        "names to these, or None for no score"
    )
