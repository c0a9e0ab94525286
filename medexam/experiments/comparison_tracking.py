"""A comparison in MLflow: a run of its own, without a parent, in the experiment of its baseline.

A comparison of the same runs takes the place of what was sent before. It tells MLflow the differences and gives it the
report and the JSON.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam import __version__
from medexam.experiments.comparison import Comparison, Pair, comparison_document
from medexam.experiments.comparison_markdown import paired_report
from medexam.experiments.comparison_tables import headline, verdicts
from medexam.experiments.mlflow_copies import Copy, put_copy
from medexam.experiments.mlflow_payload import TAG_LENGTH, started_at
from medexam.experiments.mlflow_store import experiment_id, open_store
from medexam.experiments.summary import AnyRun
from medexam.experiments.task_comparison import AnyComparison, TaskComparison, task_comparison_document
from medexam.experiments.task_comparison_markdown import paired_task_report
from medexam.experiments.task_comparison_tables import task_headline, task_verdicts
from medexam.metrics.paired_results import Difference

DIGEST_LENGTH = 12
REPORT = "compare.md"
DOCUMENT = "compare.json"


@dataclass(frozen=True)
class _Sent:
    """What MLflow is told, whatever the questions are."""

    metrics: Mapping[str, float]
    note: Sequence[str]
    report: str
    document: Mapping[str, Any]


def track_comparison(comparison: AnyComparison, *, tracking_uri: str) -> str:
    """Send `comparison` to the MLflow store at `tracking_uri`; gives MLflow's id of its run.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    sent = _describe_tasks(comparison) if isinstance(comparison, TaskComparison) else _describe_exams(comparison)
    tags = _tags(comparison.runs, sent.note)
    now = round(1000 * time.time())
    name = f"compare {', '.join(comparison.names[1:])} with {comparison.names[0]}"
    copy = Copy(
        name=name[:TAG_LENGTH],
        known={"medexam.comparison": tags["medexam.comparison"]},
        began=now,
        ended=now,
        tags=tags,
        metrics=[(key, value, 0) for key, value in sent.metrics.items()],
        texts={REPORT: sent.report, DOCUMENT: json.dumps(sent.document, ensure_ascii=False, indent=2) + "\n"},
    )
    with open_store(tracking_uri, way_out="nothing is lost; compare again with --track") as client:
        experiment = experiment_id(client, comparison.runs[0].record.cell.name, tracking_uri)
        run_id, _ = put_copy(client, experiment, copy)
    return run_id


def comparison_metrics(comparison: Comparison) -> dict[str, float]:
    """Name -> value: `accuracy_difference` and its like, with `_low` and `_high`.

    Over several pairs `name.k`, where the tag `medexam.run.k` names the run; the baseline is run 0.
    """
    values: dict[str, Any] = {
        "n": len(comparison.questions),
        "dropped": comparison.dropped.total,
        "flipped": len(comparison.flipped),
        "any_right": comparison.together.any_right,
    }
    for position, pair in enumerate(comparison.pairs, start=1):
        suffix = f".{position}" if len(comparison.pairs) > 1 else ""
        values |= {f"{name}{suffix}": value for name, value in _pair_metrics(pair).items()}
    return {name: float(value) for name, value in values.items() if value is not None}


def task_comparison_metrics(comparison: TaskComparison) -> dict[str, float]:
    """Name -> value: for each measure `f1_difference`, with `_low` and `_high`, `f1_p` and `f1_p_holm`.

    Over several pairs `name.k`, as of exams.
    """
    values: dict[str, Any] = {"n": len(comparison.questions), "dropped": comparison.dropped.total}
    for position, pair in enumerate(comparison.pairs, start=1):
        suffix = f".{position}" if len(comparison.pairs) > 1 else ""
        for name, measure in pair.measures.items():
            found = {"p": measure.p, "p_holm": measure.p_adjusted} | _difference_metrics(measure.difference)
            values |= {f"{name}_{what}{suffix}": value for what, value in found.items()}
    return {name: float(value) for name, value in values.items()}


def _describe_exams(comparison: Comparison) -> _Sent:
    note = [*headline(comparison), *verdicts(comparison)]
    document = comparison_document(comparison)
    return _Sent(comparison_metrics(comparison), note, paired_report(comparison), document)


def _describe_tasks(comparison: TaskComparison) -> _Sent:
    note = [*task_headline(comparison), *task_verdicts(comparison)]
    document = task_comparison_document(comparison)
    return _Sent(task_comparison_metrics(comparison), note, paired_task_report(comparison), document)


def _pair_metrics(pair: Pair) -> dict[str, float | None]:
    paired = pair.paired
    values: dict[str, float | None] = {"p": paired.flips.p, "p_holm": pair.p_adjusted, "kappa": paired.kappa}
    for name in ("accuracy", "exam_score", "points"):
        found = _difference_metrics(getattr(paired, name))
        values |= {f"{name}_{what}": value for what, value in found.items()}
    return values


def _difference_metrics(difference: Difference) -> dict[str, float]:
    values = {"difference": difference.value}
    if difference.interval is not None:
        values["difference_low"], values["difference_high"] = difference.interval
    return values


def _tags(compared: Sequence[AnyRun], note: Sequence[str]) -> dict[str, str]:
    runs = {f"medexam.run.{at}": run.record.run_id for at, run in enumerate(compared)}
    tags = {
        "medexam.kind": "comparison",
        "medexam.comparison": _digest(compared),
        "medexam.version": __version__,
        "mlflow.source.name": "medexam",
        "mlflow.source.type": "LOCAL",
        "mlflow.note.content": "\n\n".join(note),
        **runs,
    }
    return {key: value[:TAG_LENGTH] for key, value in tags.items()}


def _digest(runs: Sequence[AnyRun]) -> str:
    """Which runs are compared, the baseline first; their scores may change while they are continued."""
    known = json.dumps([[run.record.run_id, started_at(run)] for run in runs])
    return hashlib.sha256(known.encode()).hexdigest()[:DIGEST_LENGTH]
