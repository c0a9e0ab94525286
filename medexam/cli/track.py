"""`medexam track`: send stored runs and optimizations to MLflow, now or after an outage."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import RunsDirOption

RunsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        autocompletion=complete_run,
        help="Folders of runs or optimizations, folders of these, or ids in --runs-dir.",
    ),
]


def track(
    runs: RunsArgument,
    tracking_uri: Annotated[
        str | None,
        typer.Option(help="MLflow store or server; $MLFLOW_TRACKING_URI or that beside the runs by default."),
    ] = None,
    runs_dir: RunsDirOption = None,
) -> None:
    """Send stored runs and optimizations to MLflow; what is already there is updated."""
    from medexam.cli.actions.track import send_runs

    send_runs(runs, tracking_uri, runs_dir)
