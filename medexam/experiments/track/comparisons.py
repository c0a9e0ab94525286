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
from medexam.experiments.compare.result import Comparison, comparison_document
from medexam.experiments.report.comparison_markdown import paired_report
from medexam.experiments.report.comparison_tables import headline, verdicts
from medexam.experiments.report.language_tables import consistency_report
from medexam.experiments.track.copies import SOURCE, Copy, put_copy
from medexam.experiments.track.payload import TAG_LENGTH, started_at
from medexam.experiments.track.store import experiment_id, open_store

DIGEST_LENGTH = 12
REPORT = "compare.md"
DOCUMENT = "compare.json"


@dataclass(frozen=True)
class _Sent:
    """What MLflow is told, whatever is compared."""

    comparison: Comparison
    metrics: Mapping[str, float]
    note: Sequence[str]
    report: str
    document: Mapping[str, Any]
    way: str = ""
    """How the runs are compared if not as usual; it makes another comparison of them."""


def track_comparison(found: Comparison | Consistency, *, tracking_uri: str) -> str:
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
    """Name -> value: `n`, `dropped`, and what the benchmark's comparison keeps, such as `accuracy_difference`.

    Over several pairs `name.k`, where the tag `medexam.run.k` names the run; the baseline is run 0.
    """
    overall, pairs = comparison.found.values()
    values: dict[str, Any] = {"n": len(comparison.questions), "dropped": comparison.dropped.total, **overall}
    for position, pair in enumerate(pairs, start=1):
        suffix = f".{position}" if len(pairs) > 1 else ""
        values |= {f"{name}{suffix}": value for name, value in pair.items()}
    return {name: float(value) for name, value in values.items() if value is not None}


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


def _describe(found: Comparison | Consistency) -> _Sent:
    if isinstance(found, Consistency):
        note = headline(found.comparison)
        values, document = consistency_metrics(found), found.document()
        return _Sent(found.comparison, values, note, consistency_report(found), document, way="languages")
    note = [*headline(found), *verdicts(found)]
    return _Sent(found, comparison_metrics(found), note, paired_report(found), comparison_document(found))


def _tags(sent: _Sent) -> dict[str, str]:
    runs = {f"medexam.run.{at}": run.record.run_id for at, run in enumerate(sent.comparison.runs)}
    tags = {
        "medexam.kind": "comparison",
        "medexam.comparison": _digest(sent),
        "medexam.version": __version__,
        **SOURCE,
        "mlflow.note.content": "\n\n".join(sent.note),
        **runs,
    }
    return {key: value[:TAG_LENGTH] for key, value in tags.items()}


def _digest(sent: _Sent) -> str:
    """Which runs are compared and how, the baseline first; their scores may change while they are continued."""
    runs = [[run.record.run_id, started_at(run)] for run in sent.comparison.runs]
    known = json.dumps([*runs, sent.way] if sent.way else runs)
    return hashlib.sha256(known.encode()).hexdigest()[:DIGEST_LENGTH]
