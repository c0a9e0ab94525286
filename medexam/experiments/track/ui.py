"""The MLflow UI on a store of runs, as a process of its own that ends with this one."""

import ipaddress
import os
import signal
import socket
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec

from medexam.errors import TrackingError
from medexam.experiments.track.database import artifact_root, sqlite_path
from medexam.experiments.track.run_list import address
from medexam.experiments.track.store import NOT_INSTALLED, open_store
from medexam.text import hide_address

SHUTDOWN_S = 10.0
SERVER_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "PYTHONWARNINGS": "ignore",
}
"""The UI shows runs: it reports nothing to MLflow's makers, starts no job workers, and keeps the terminal clean."""
APP = "medexam"
"""Entry point of the server whose pages open on scores; an installation without it serves MLflow's as they are."""
DEFAULT_EXPERIMENT = "0"
"""The empty experiment that every store holds."""


def ui_command(tracking_uri: str, *, host: str, port: int) -> list[str]:
    """Build the command that serves the store at `tracking_uri`, with one worker."""
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", tracking_uri]
    root = artifact_root(tracking_uri)
    if root is not None:
        command += ["--artifacts-destination", root.as_uri()]
    if entry_points(group="mlflow.app", name=APP):
        command += ["--app-name", APP]
    command += ["--host", host, "--port", str(port), "--workers", "1"]
    return [*command, "--uvicorn-opts", "--log-level=warning"]


def experiment_pages(tracking_uri: str, *, host: str, port: int) -> dict[str, str]:
    """Map each experiment in the store to the address of its runs in the UI: a list with scores, the best first.

    Raises `TrackingError` when there is no store, or it is a server with its own UI.
    """
    _check_store(tracking_uri)
    with open_store(tracking_uri, writes=False) as client:
        return {
            experiment.name: f"http://{host}:{port}/{address(experiment)}"
            for experiment in client.search_experiments()
            if experiment.experiment_id != DEFAULT_EXPERIMENT
        }


def serve_ui(tracking_uri: str, *, host: str, port: int) -> int:
    """Serve the UI until it ends or Ctrl-C; return its exit code, 0 after Ctrl-C.

    Raises `TrackingError` when there is no store, it is a server with its own UI, or the port is taken.
    """
    _check_store(tracking_uri)
    check_port(host, port)
    # A session of its own, so that Ctrl-C reaches the server and its workers once, through this process.
    process = subprocess.Popen(  # noqa: S603
        ui_command(tracking_uri, host=host, port=port), env={**os.environ, **SERVER_ENVIRONMENT}, start_new_session=True
    )
    old_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        signal.signal(signal.SIGTERM, old_handler)
        _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End the server and its workers, by force where they do not listen."""
    for end in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, end)
            process.wait(timeout=SHUTDOWN_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _check_store(tracking_uri: str) -> None:
    if find_spec("mlflow") is None:
        raise TrackingError(NOT_INSTALLED)
    if tracking_uri.startswith(("http://", "https://")):
        raise TrackingError(f"{hide_address(tracking_uri)} is an MLflow server with its own UI: open it in a browser")
    path = sqlite_path(tracking_uri)
    if path is not None and not path.is_file():
        raise TrackingError(
            f"no MLflow store at {path}: run an experiment first, send stored runs with `medexam track RUN`, "
            "or name another place with --runs-dir or --tracking-uri"
        )


def is_local(host: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_port(host: str, port: int) -> None:
    """Raise `TrackingError` when nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise TrackingError(
                f"cannot listen on {host}:{port} ({error.strerror}); choose another with --port"
            ) from None
