"""A comparison in MLflow: a run of its own, without a parent, in the experiment of its baseline.

A comparison of the same runs takes the place of what was sent before. It tells MLflow the differences and gives it the
report and the JSON.
"""

import hashlib
import json
import time

from medexam.experiments.compare.languages import Consistency
from medexam.experiments.compare.result import Comparison
from medexam.experiments.report.comparison_tables import headline, paired_report, verdicts
from medexam.experiments.report.escaping import disarm
from medexam.experiments.report.language_tables import consistency_report
from medexam.experiments.track.copies import SOURCE, Copy, put_copy
from medexam.experiments.track.payload import TAG_LENGTH, started_at
from medexam.experiments.track.store import experiment_id, open_store
from medexam.version import __version__

DIGEST_LENGTH = 12
REPORT = "compare.md"
DOCUMENT = "compare.json"


def track_comparison(found: Comparison, *, tracking_uri: str) -> str:
    """Send what was `found` to the MLflow store at `tracking_uri`; gives MLflow's id of its run.

    Raises `TrackingError` when the store cannot be reached or written.
    """
    now = round(1000 * time.time())
    runs = f"{', '.join(found.names[1:])} with {found.names[0]}"
    name = " ".join(filter(None, ("compare", found.way, runs)))
    if isinstance(found, Consistency):
        note, report = headline(found), consistency_report(found)
    else:
        note, report = [*headline(found), *verdicts(found)], paired_report(found)
    known = {"medexam.comparison": _digest(found)}
    tags = {
        "medexam.kind": "comparison",
        **known,
        "medexam.version": __version__,
        **SOURCE,
        "mlflow.note.content": disarm("\n\n".join(note)),
        **{f"medexam.run.{at}": run.record.run_id for at, run in enumerate(found.runs)},
    }
    copy = Copy(
        name=name[:TAG_LENGTH],
        known=known,
        began=now,
        ended=now,
        tags={key: value[:TAG_LENGTH] for key, value in tags.items()},
        metrics=[(key, value, 0) for key, value in found.values().items()],
        texts={REPORT: report, DOCUMENT: json.dumps(found.document(), ensure_ascii=False, indent=2) + "\n"},
    )
    with open_store(tracking_uri, way_out="nothing is lost; compare again with --track") as client:
        experiment = experiment_id(client, found.runs[0].record.cell.name, tracking_uri)
        run_id, _ = put_copy(client, experiment, copy)
    return run_id


def _digest(found: Comparison) -> str:
    """Which runs are compared and how, the baseline first; their scores may change while they are continued."""
    runs = [[run.record.run_id, started_at(run)] for run in found.runs]
    known = json.dumps([*runs, found.way] if found.way else runs)
    return hashlib.sha256(known.encode()).hexdigest()[:DIGEST_LENGTH]
