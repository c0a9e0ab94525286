"""What MLflow keeps of a run that answers in words: counts, and measures with their intervals by group and subset."""

import re

from medexam.metrics.task_results import Measures, TaskMetrics

_COUNTS = ("selected", "n", "unanswered", "failed", "missing")
_COSTS = ("prompt_tokens", "completion_tokens", "latency_p50_s", "latency_p95_s")
_NOT_ALLOWED = re.compile(r"[^\w./ -]", re.ASCII)
"""Characters that MLflow takes in no name."""


def task_values(metrics: TaskMetrics) -> dict[str, float]:
    """Name -> value: counts, measures with `_low` and `_high`, and `measure.group` for each group and subset."""
    values: dict[str, float | None] = {name: getattr(metrics, name) for name in (*_COUNTS, *_COSTS)}
    values |= _measure_values(metrics.measures)
    for group, measures in (*metrics.by_group.items(), *metrics.by_subset.items()):
        values |= _measure_values(measures, f".{group}")
    return {_NOT_ALLOWED.sub("_", name): float(value) for name, value in values.items() if value is not None}


def _measure_values(measures: Measures, ending: str = "") -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for name, measure in measures.items():
        low, high = measure.interval or (None, None)
        values |= {f"{name}{ending}": measure.value, f"{name}_low{ending}": low, f"{name}_high{ending}": high}
    return values
