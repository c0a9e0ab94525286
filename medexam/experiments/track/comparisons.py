"""A comparison in MLflow: a run of its own, without a parent, in the experiment of its baseline.

A comparison of the same runs takes the place of what was sent before. It tells MLflow the differences and gives it the
report and the JSON.
"""

import hashlib
import json
import time

from medexam.experiments.compare.languages import Consistency, CrossLanguages
from medexam.experiments.compare.result import Comparison
from medexam.experiments.report.comparison_tables import comparison_lines, paired_report, verdicts
from medexam.experiments.report.escaping import disarm
from medexam.experiments.report.language_tables import consistency_report
from medexam.experiments.track.copies import SOURCE, Copy, put_copy
from medexam.experiments.track.payload import TAG_LENGTH, started_at
from medexam.experiments.track.store import experiment_id, open_store
from medexam.plugins import __version__

DIGEST_LENGTH = 12
REPORT = "compare.md"
DOCUMENT = "compare.json"


def track_comparison(comparison: Comparison, *, tracking_uri: str) -> str:
    """Send a comparison to the MLflow store at `tracking_uri`; return MLflow's id of its run.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    now = round(1000 * time.time())
    runs = f"{', '.join(comparison.names[1:])} with {comparison.names[0]}"
    name = " ".join(filter(None, ("compare", comparison.method, runs)))
    if isinstance(comparison, Consistency | CrossLanguages):
        note, report = comparison_lines(comparison), consistency_report(comparison)
    else:
        note, report = [*comparison_lines(comparison), *verdicts(comparison)], paired_report(comparison)
    key_tags = {"medexam.comparison": _digest(comparison)}
    tags = {
        "medexam.kind": "comparison",
        **key_tags,
        "medexam.version": __version__,
        **SOURCE,
        "mlflow.note.content": disarm("\n\n".join(note)),
        **{f"medexam.run.{position}": run.record.run_id for position, run in enumerate(comparison.runs)},
    }
    copy = Copy(
        name=name[:TAG_LENGTH],
        key_tags=key_tags,
        began=now,
        ended=now,
        tags={key: value[:TAG_LENGTH] for key, value in tags.items()},
        metrics=[(key, value, 0) for key, value in comparison.values().items()],
        texts={REPORT: report, DOCUMENT: json.dumps(comparison.document(), ensure_ascii=False, indent=2) + "\n"},
    )
    with open_store(tracking_uri, way_out="nothing is lost; compare again with --track") as client:
        experiment = experiment_id(client, comparison.runs[0].record.cell.name, tracking_uri)
        run_id, _ = put_copy(client, experiment, copy)
    return run_id


def _digest(comparison: Comparison) -> str:
    """Hash which runs are compared and how, the baseline first; their scores may change while they are continued."""
    runs = [[run.record.run_id, started_at(run)] for run in comparison.runs]
    content = json.dumps([*runs, comparison.method] if comparison.method else runs)
    return hashlib.sha256(content.encode()).hexdigest()[:DIGEST_LENGTH]
