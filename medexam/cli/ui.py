"""`medexam ui`: the MLflow UI on the runs directory."""

import sys
from typing import Annotated

import typer

from medexam.cli.options import RunsDirOption, refuse
from medexam.cli.views.listening import LOOPBACK, check_port
from medexam.cli.views.runs import print_notice
from medexam.experiments.store.paths import default_runs_dir
from medexam.files import host_name


def ui(
    context: typer.Context,
    runs_dir: RunsDirOption = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 5000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    tracking_uri: Annotated[
        str | None, typer.Option(help="MLflow store to show; $MLFLOW_TRACKING_URI or the runs' own by default.")
    ] = None,
) -> None:
    """Serve the MLflow UI until Ctrl-C."""
    if tracking_uri is not None:
        refuse(context, {"runs_dir"}, "--tracking-uri names another store: leave out one of the two")
    from medexam.experiments.track.copies import default_tracking_uri, experiment_pages, own_tracking_uri, serve_ui

    own_uri = default_tracking_uri(default_runs_dir()) if runs_dir is None else own_tracking_uri(runs_dir)
    uri = tracking_uri or own_uri
    check_port(host, port)
    if host not in LOOPBACK:
        print_notice(
            f"warning: MLflow's UI asks for no password: everyone who reaches {host}:{port} can read and delete runs; "
            f"leave --host out, and see it from elsewhere by ssh -L {port}:127.0.0.1:{port} {host_name()}"
        )
    pages = experiment_pages(uri, f"http://{host}:{port}")
    sys.stderr.write(f"MLflow UI at http://{host}:{port}, ready in a few seconds; Ctrl-C ends it\n")
    sys.stderr.writelines(f"  {name}: {address}\n" for name, address in pages.items())
    sys.stderr.flush()
    serve_ui(uri, host=host, port=port)
