"""What the MLflow UI shows of an experiment: its list of runs with scores, the best first, and its description.

MLflow keeps a view that somebody shares as a tag of the experiment and opens it by its name in the address. This is
one. The description stands above every list of the experiment: what was found, each run's score, and the charts.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from medexam.experiments.report.escaping import disarm
from medexam.experiments.report.findings import findings, lead
from medexam.experiments.report.markdown import render_table
from medexam.experiments.report.tables import comparison
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


DESCRIPTION_LENGTH = 5_000
"""Characters of an experiment's description that every version of MLflow takes; rows of the table are cut for it."""


def main_scores(values: Iterable[str]) -> list[str]:
    """Choose of the names of metrics those that a list shows first: accuracy and exam score where a run has them."""
    names = list(values)
    return [name for name in FIRST if name in names] or [name for name in names if name not in COUNTS][:2]


def sort_best_first(runs: Sequence[AnyRun]) -> list[AnyRun]:
    """Sort runs of one benchmark family by their main score, the highest first."""
    values = {id(run): run.benchmark.values(run.metrics) for run in runs}
    scores = main_scores(values[id(runs[0])]) if runs else []
    return sorted(runs, key=lambda run: [-values[id(run)].get(name, -inf) for name in scores])


def put_view(client: Any, experiment_id: str, values: Sequence[str]) -> None:
    """Keep the view of an experiment whose runs have metrics of these names."""
    scores = main_scores(values)
    columns = [*(f"metrics.`{name}`" for name in scores), *(f"params.`{name}`" for name in PARAMS)]
    experiments = find_tracked_runs(client, experiment_id, {"medexam.kind": "experiment"})
    state = {
        "selectedColumns": columns,
        # Runs that an earlier version nested below the run of their experiment.
        "runsExpanded": {str(run.info.run_id): True for run in experiments},
        "runsHiddenMode": "FIRST_20_RUNS",
        # The run of page and charts has no score, and Compare plots only what all selected runs have.
        "searchFilter": "tags.`medexam.kind` != 'experiment'",
        **({"orderByKey": columns[0], "orderByAsc": False} if scores else {}),
    }
    client.set_experiment_tag(experiment_id, TAG, json.dumps(state))


def describe_experiment(
    runs: Sequence[AnyRun], *, experiment_id: str, overview: str, charts: Sequence[str], page: str | None
) -> str:
    """Describe in Markdown what these runs of one family found: sentences, the page's link, a table, and charts.

    `overview` is MLflow's id of the run that holds `charts`, paths among its files, and `page`, if it has one.
    """
    best_first = sort_best_first(runs)
    sentences = disarm(" ".join(filter(None, dict.fromkeys([lead(runs), *findings(runs)]))))
    links = [f"`medexam report {runs[0].folder.path.resolve().parent} --html report.html` writes every question."]
    files = f"#/experiments/{experiment_id}/runs/{overview}/artifacts"
    if page is not None:
        links.insert(0, f"[The page of every question and reply]({files}/{page}).")
    table = comparison(best_first)
    pictures = [f"![{path}](get-artifact?run_uuid={overview}&path={path})" for path in charts]
    parts = [sentences, " ".join(links), *pictures[:1], "", *pictures[1:]]
    room = DESCRIPTION_LENGTH - sum(len(part) + 2 for part in parts)
    rows = len(table.rows)
    while rows and len(text := disarm(render_table(replace(table, rows=table.rows[:rows])))) > room:
        rows -= 1
    parts[parts.index("")] = text if rows else ""
    return "\n\n".join(filter(None, parts))


def address(experiment: Any) -> str:
    """Return where an experiment's runs are, behind the address of the UI; with our view if it has one."""
    view = f"viewStateShareKey={VIEW}&" if TAG in experiment.tags else ""
    return f"#/experiments/{experiment.experiment_id}/runs?{view}workflowType=machine_learning"
