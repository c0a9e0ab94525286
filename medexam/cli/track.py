"""`medexam track`: send stored runs to MLflow, now or after an outage."""

import sys
from pathlib import Path
from typing import Annotated

import typer

RunsArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory.")
]


def track(
    runs: RunsArgument,
    tracking_uri: Annotated[
        str | None, typer.Option(help="MLflow store or server; by default the store beside the first run.")
    ] = None,
    runs_dir: Annotated[
        Path | None, typer.Option(help="Where runs are kept; $MEDEXAM_RUNS or ./runs by default.")
    ] = None,
) -> None:
    """Send stored runs to MLflow; a run that is already there is updated."""
    from medexam.experiments.places import default_runs_dir, run_paths
    from medexam.experiments.run_folder import find_runs
    from medexam.experiments.summary import load_run
    from medexam.experiments.tracking import default_tracking_uri
    from medexam.experiments.tracking import track as send

    stored = [load_run(folder) for folder in find_runs(run_paths(runs, runs_dir or default_runs_dir()))]
    uri = tracking_uri or default_tracking_uri(runs_dir or stored[0].folder.path.resolve().parent)
    for tracked in send(stored, tracking_uri=uri):
        sys.stdout.write(f"{tracked.run_id} is MLflow run {tracked.mlflow_run_id}\n")
    sys.stderr.write(f"sent to {uri}\n")
