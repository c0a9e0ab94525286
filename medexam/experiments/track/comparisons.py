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
from medexam.experiments.compare.languages import Consistency
from medexam.experiments.compare.result import Compared, Comparison, Pair, comparison_document
from medexam.experiments.compare.task_comparison import AnyComparison, TaskComparison, task_comparison_document
from medexam.experiments.report.comparison_markdown import paired_report
from medexam.experiments.report.comparison_tables import headline, verdicts
from medexam.experiments.report.language_tables import consistency_report
from medexam.experiments.report.task_comparison_markdown import paired_task_report
from medexam.experiments.report.task_comparison_tables import task_headline, task_verdicts
from medexam.experiments.store.stored_run import AnyMetrics
from medexam.experiments.track.copies import Copy, put_copy
from medexam.experiments.track.payload import TAG_LENGTH, started_at
from medexam.experiments.track.store import experiment_id, open_store
from medexam.metrics.paired.results import Difference

DIGEST_LENGTH = 12
REPORT = "compare.md"
DOCUMENT = "compare.json"


@dataclass(frozen=True)
class _Sent:
    """What MLflow is told, whatever is compared."""

    comparison: Compared[AnyMetrics]
    metrics: Mapping[str, float]
    note: Sequence[str]
    report: str
    document: Mapping[str, Any]
    way: str = ""
    """How the runs are compared if not as usual; it makes another comparison of them."""


def track_comparison(found: AnyComparison | Consistency, *, tracking_uri: str) -> str:
    """Send what was `found` to the MLflow store at `tracking_uri`; gives MLflow's id of its run.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    sent = _describe(found)
    comparison = sent.comparison
    tags = _tags(sent)
    now = round(1000 * time.time())
    runs = f"{', '.join(comparison.names[1:])} with {comparison.names[0]}"
    name = " ".join(filter(None, ("compare", sent.way, runs)))
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


def consistency_metrics(found: Consistency) -> dict[str, float]:
    """Name -> value: how many questions are right in both languages, in each alone, and in neither."""
    document = found.document()
    first, second = found.languages
    return {
        "n": float(document["questions"]),
        "dropped": float(found.comparison.dropped.total),
        **{name: float(document[name]) for name in ("both_right", "neither", "same_answer")},
        **{name: float(len(document[name])) for name in (f"only_{first}", f"only_{second}")},
        "neither_with_the_same_answer": float(len(found.same_wrong)),
        "p": float(document["mcnemar_p"]),
    }


def _describe(found: AnyComparison | Consistency) -> _Sent:
    if isinstance(found, Consistency):
        note = headline(found.comparison)
        values, document = consistency_metrics(found), found.document()
        return _Sent(found.comparison, values, note, consistency_report(found), document, way="languages")
    return _describe_tasks(found) if isinstance(found, TaskComparison) else _describe_exams(found)


def _describe_exams(comparison: Comparison) -> _Sent:
    note = [*headline(comparison), *verdicts(comparison)]
    document = comparison_document(comparison)
    return _Sent(comparison, comparison_metrics(comparison), note, paired_report(comparison), document)


def _describe_tasks(comparison: TaskComparison) -> _Sent:
    note = [*task_headline(comparison), *task_verdicts(comparison)]
    document = task_comparison_document(comparison)
    return _Sent(comparison, task_comparison_metrics(comparison), note, paired_task_report(comparison), document)


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


def _tags(sent: _Sent) -> dict[str, str]:
    runs = {f"medexam.run.{at}": run.record.run_id for at, run in enumerate(sent.comparison.runs)}
    tags = {
        "medexam.kind": "comparison",
        "medexam.comparison": _digest(sent),
        "medexam.version": __version__,
        "mlflow.source.name": "medexam",
        "mlflow.source.type": "LOCAL",
        "mlflow.note.content": "\n\n".join(sent.note),
        **runs,
    }
    return {key: value[:TAG_LENGTH] for key, value in tags.items()}


def _digest(sent: _Sent) -> str:
    """Which runs are compared and how, the baseline first; their scores may change while they are continued."""
    runs = [[run.record.run_id, started_at(run)] for run in sent.comparison.runs]
    known = json.dumps([*runs, sent.way] if sent.way else runs)
    return hashlib.sha256(known.encode()).hexdigest()[:DIGEST_LENGTH]
