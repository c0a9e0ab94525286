"""`medexam track` and `medexam ui`: send stored runs and optimizations to MLflow, and look at them there."""

import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.options import RUNS, RunsDirOption
from medexam.cli.output import print_pages, read_current
from medexam.errors import SpecError
from medexam.text import print_notice


def track(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Folders of runs or optimizations, folders of these, or ids in --runs-dir.",
        ),
    ],
    tracking_uri: Annotated[
        str | None,
        typer.Option(help="MLflow store or server; $MLFLOW_TRACKING_URI or that beside the runs by default."),
    ] = None,
    runs_dir: RunsDirOption = RUNS,
) -> None:
    """Send stored runs and optimizations to MLflow; what is already there is updated.

    For example:
        medexam track 3c2aae
    """
    from medexam.experiments.optimize.optimization import Optimization, OptimizationFolder
    from medexam.experiments.store.run_folder import RunFolder, find_runs, run_paths
    from medexam.experiments.track import default_tracking_uri, track_optimization, track_runs

    optimizations: dict[Path, None] = {}
    places = []
    for path in run_paths(runs, runs_dir):
        inside = [path, *(sorted(path.iterdir()) if path.is_dir() else [])]
        here = [folder.resolve() for folder in inside if OptimizationFolder(folder).exists()]
        optimizations |= dict.fromkeys(here)
        # Where no optimization is, runs must be.
        if not here or any(RunFolder(folder).exists() for folder in inside):
            places.append(path)
    stored_runs = read_current(find_runs(places))
    first_path = stored_runs[0].folder.path if stored_runs else next(iter(optimizations))
    uri = tracking_uri or default_tracking_uri(first_path.resolve().parent)
    for run in stored_runs:
        if pending := run.metrics.selected - run.metrics.n:
            print_notice(f"warning: {run.folder.name} is sent as it is, with {pending:,} of its questions pending")
    copies = list(zip([run.folder.name for run in stored_runs], track_runs(stored_runs, tracking_uri=uri), strict=True))
    for folder in optimizations:
        optimization = Optimization.load(OptimizationFolder(folder))
        copies.append((folder.name, track_optimization(optimization, tracking_uri=uri)))
    for name, copy in copies:
        sys.stdout.write(f"{name} is MLflow run {copy.run_id}\n")
    print_pages([copy for _, copy in copies], uri)


def ui(
    runs_dir: Annotated[
        Path | None, typer.Option(help="The folder of runs whose store is shown; $MEDEXAM_RUNS or ./runs by default.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 5000,
    tracking_uri: Annotated[
        str | None, typer.Option(help="MLflow store to show; $MLFLOW_TRACKING_URI or the runs' own by default.")
    ] = None,
) -> None:
    """Serve the MLflow UI until Ctrl-C.

    For example:
        medexam ui
        medexam ui --port 5001
    """
    if tracking_uri and runs_dir:
        raise SpecError("--runs-dir: --tracking-uri names another store: leave out one of the two")
    from medexam.experiments.store.run_folder import default_runs_dir
    from medexam.experiments.track import default_tracking_uri, own_tracking_uri, serve_ui

    own_uri = default_tracking_uri(default_runs_dir()) if runs_dir is None else own_tracking_uri(runs_dir)
    uri = tracking_uri or own_uri
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise SpecError(f"cannot listen on 127.0.0.1:{port} ({error.strerror}); choose another with --port") from None
    serve_ui(uri, host="127.0.0.1", port=port)
