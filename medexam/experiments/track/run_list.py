"""How the MLflow UI opens the list of an experiment's runs: with their scores, the best first, unfolded.

MLflow keeps a view that somebody shares as a tag of the experiment and opens it by its name in the address. This is
one.
"""

import json
from collections.abc import Sequence
from typing import Any

from medexam.experiments.report.escaping import disarm
from medexam.experiments.report.findings import findings, lead
from medexam.experiments.store.stored_run import AnyRun
from medexam.experiments.track.copies import find_tracked_runs

VIEW = "medexam"
"""What the address calls the view."""
TAG = f"mlflow.sharedViewState.{VIEW}"
FIRST = ("accuracy", "exam_score")
"""The scores that the list shows, of a run that has them."""
COUNTS = frozenset({"selected", "n", "right", "wrong", "unanswered", "failed", "missing"})
"""Metrics that count questions: the list shows scores."""
NOTE = "mlflow.note.content"
"""Tag whose text MLflow shows as the description of an experiment, in its list and above its runs."""
PARAMS = ("model", "program", "language")


def put_view(client: Any, experiment_id: str, values: Sequence[str]) -> None:
    """Keep the view of an experiment whose runs have metrics of these names."""
    scores = [name for name in FIRST if name in values] or [name for name in values if name not in COUNTS][:2]
    columns = [*(f"metrics.`{name}`" for name in scores), *(f"params.`{name}`" for name in PARAMS)]
    experiments = find_tracked_runs(client, experiment_id, {"medexam.kind": "experiment"})
    state = {
        "selectedColumns": columns,
        "runsExpanded": {str(run.info.run_id): True for run in experiments},
        **({"orderByKey": columns[0], "orderByAsc": False} if scores else {}),
    }
    client.set_experiment_tag(experiment_id, TAG, json.dumps(state))


def put_description(client: Any, experiment_id: str, runs: Sequence[AnyRun]) -> None:
    """Say what the runs of an experiment found, and which command shows every question."""
    sentences = dict.fromkeys([lead(runs), *findings(runs)])
    command = f"`medexam report {runs[0].folder.path.resolve().parent} --html report.html` writes every question."
    client.set_experiment_tag(experiment_id, NOTE, disarm("\n\n".join(filter(None, sentences))) + f"\n\n{command}")


def address(experiment: Any) -> str:
    """Return where an experiment's runs are, behind the address of the UI; with our view if it has one."""
    view = f"viewStateShareKey={VIEW}&" if TAG in experiment.tags else ""
    return f"#/experiments/{experiment.experiment_id}/runs?{view}workflowType=machine_learning"
