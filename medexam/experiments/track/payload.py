"""What MLflow is told of a run, as plain values: parameters, metrics and tags.

Parameters are what the run's digest covers: MLflow never lets a parameter change, and neither does a run's identity.
What may change when a run is continued (the selection of questions, where the server listens) goes into tags. The
values come from `spec.json`, `environment.json` and the metrics; keys of providers are in none of them.
"""

import re
from collections.abc import Mapping
from typing import Any

from medexam.experiments.report.formatting import flatten
from medexam.experiments.report.markdown import headline
from medexam.experiments.report.task_report import task_headline
from medexam.experiments.store.answerers import describe_answerers
from medexam.experiments.store.stored_run import AnyRun, is_exam_run, is_task_run
from medexam.metrics import Interval, Metrics, Scores, TaskMetrics
from medexam.metrics.task_results import Measures

PARAM_LENGTH = 6_000
TAG_LENGTH = 8_000
DIGEST_LENGTH = 36
"""MLflow's limits, in characters."""

COUNTS = ("selected", "n", "right", "wrong", "unanswered", "failed", "missing")
SCORES = (
    "accuracy",
    "exam_score",
    "points",
    "unanswered_ratio",
    "chance_accuracy",
    "chance_exam_score",
    "chance_points",
    "headqa_v1_accuracy",
    "headqa_v1_points",
)
COSTS = ("prompt_tokens", "completion_tokens", "latency_p50_s", "latency_p95_s")
TASK_COUNTS = ("selected", "n", "unanswered", "failed", "missing")
OPTION_SCORES = ("expected_calibration_error", "brier_score", "label_mass", "flip_rate", "tied")
_NOT_ALLOWED = re.compile(r"[^\w./ -]", re.ASCII)
"""Characters that MLflow takes in no name."""
GROUP_SCORES = ("accuracy", "exam_score", "points", "headqa_v1_accuracy", "headqa_v1_points")


def run_params(run: AnyRun) -> dict[str, str]:
    """Dotted key of the spec -> value, for everything that an answer of the run depends on.

    The words of the prompts are left out: the tag `medexam.program.prompt` names them, the digest covers them, and the
    artifacts hold them whole.
    """
    identity = {key: value for key, value in run.record.identity.items() if key != "words"}
    params = flatten(identity) | {"dataset.version": run.record.dataset_version}
    return {key: value[:PARAM_LENGTH] for key, value in params.items()}


def run_tags(run: AnyRun) -> dict[str, str]:
    """What the run is called, what it ran on and which questions it was last asked; without its parent."""
    record, environment = run.record, run.environment
    cell = record.cell.model_dump(mode="json", include={"dataset", "program", *(["model"] if run.model else [])})
    params = run_params(run)
    engine = environment.get("engine") or {}
    tags = {
        "medexam.kind": "run",
        "medexam.run_id": record.run_id,
        "medexam.started_at": started_at(run),
        "medexam.spec_digest": record.spec_digest,
        "medexam.experiment_digest": record.experiment_digest,
        "medexam.run_dir": str(run.folder.path.resolve()),
        "medexam.status": run.status,
        "medexam.program": run.program,
        **{f"medexam.{key}": value for key, value in flatten(cell).items() if key not in params},
        **{f"medexam.ran.{key}": value for key, value in flatten({"engine": engine}).items()},
        "mlflow.note.content": "\n\n".join(part for part in (record.description, _headline(run)) if part),
        **version_tags(environment),
    }
    if run.model is not None:
        tags |= {"medexam.engine": record.cell.model.engine, "medexam.model": run.model}
    if run.mixed:
        tags["medexam.mixed_models"] = describe_answerers(run.answerers)
    return {key: value[:TAG_LENGTH] for key, value in tags.items() if value}


def _headline(run: AnyRun) -> str:
    if is_task_run(run):
        return task_headline(run)
    return headline(run) if is_exam_run(run) else ""


def version_tags(environment: Mapping[str, Any]) -> dict[str, str]:
    """Version of this package and the commit that ran."""
    commit = environment.get("git_commit") or ""
    return {
        "medexam.version": str(environment.get("medexam") or ""),
        "medexam.git_commit": commit,
        "mlflow.source.name": "medexam",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": commit.removesuffix("+changes"),
    }


def started_at(run: AnyRun) -> str:
    """When the run was begun; with its id it tells a run from one of the same spec on another machine."""
    return str(run.environment.get("started_at") or "unknown")


def run_metrics(metrics: Metrics | TaskMetrics) -> dict[str, float]:
    """Name -> value, as `exam_metrics` or `task_metrics` give them."""
    return task_metrics(metrics) if isinstance(metrics, TaskMetrics) else exam_metrics(metrics)


def task_metrics(metrics: TaskMetrics) -> dict[str, float]:
    """Name -> value: counts, measures with `_low` and `_high`, and `measure.group` for each group and subset."""
    values: dict[str, float | None] = {name: getattr(metrics, name) for name in (*TASK_COUNTS, *COSTS)}
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


def exam_metrics(metrics: Metrics) -> dict[str, float]:
    """Name -> value: counts, scores with `_low` and `_high`, and `score.group` for each discipline and option count.

    With those of the option scores and of the passages where the run has them.
    """
    values = {name: getattr(metrics, name) for name in (*COUNTS, *SCORES, *COSTS)}
    if metrics.option_scores is not None:
        values |= {name: getattr(metrics.option_scores, name) for name in OPTION_SCORES}
    correlation = metrics.retrieval.score_correctness if metrics.retrieval is not None else None
    if correlation is not None:
        values["retrieval_score_correctness"] = correlation.r
    intervals: dict[str, Interval | None] = {
        "accuracy": metrics.accuracy_interval,
        "exam_score": metrics.exam_score_interval,
        "points": metrics.points_interval,
        "unanswered_ratio": metrics.unanswered_ratio_interval,
        "retrieval_score_correctness": correlation.interval if correlation is not None else None,
    }
    for name, interval in intervals.items():
        if interval is not None:
            values[f"{name}_low"], values[f"{name}_high"] = interval
    groups: dict[str, Scores] = {discipline.value: group for discipline, group in metrics.by_discipline.items()}
    groups |= {f"options_{options}": group for options, group in metrics.by_option_count.items()}
    for group_name, group in groups.items():
        values |= {f"{score}.{group_name}": getattr(group, score, None) for score in GROUP_SCORES}
    return {name: float(value) for name, value in values.items() if value is not None}


def yearly_metrics(metrics: Metrics | TaskMetrics) -> dict[int, dict[str, float]]:
    """Year -> name -> value, to be logged with the year as step, so that MLflow draws a curve over the years.

    Empty for tasks, which have no year.
    """
    if isinstance(metrics, TaskMetrics):
        return {}
    return {
        year: {
            f"{name}_by_year": float(value)
            for name in ("accuracy", "exam_score", "points", "chance_accuracy")
            if (value := getattr(group, name)) is not None
        }
        for year, group in metrics.by_year.items()
    }
