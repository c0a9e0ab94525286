"""The MLflow UI on a store of runs, as a process of its own that ends with this one."""

import os
import signal
import subprocess
import sys

from medexam.errors import TrackingError
from medexam.experiments.track.copies import open_store, sqlite_path, view_address
from medexam.text import hide_address

_SHUTDOWN_S = 10.0
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "PYTHONWARNINGS": "ignore",
}
"""The UI shows runs: it reports nothing to MLflow's makers, starts no job workers, and keeps the terminal clean."""


def experiment_pages(tracking_uri: str, *, host: str, port: int) -> dict[str, str]:
    """Map each experiment in the store to the address of its runs in the UI: a list with scores, the best first.

    Raises `TrackingError` when there is no store, or it is a server with its own UI.
    """
    path = sqlite_path(tracking_uri)
    if tracking_uri.startswith(("http://", "https://")):
        raise TrackingError(f"{hide_address(tracking_uri)} is an MLflow server with its own UI: open it in a browser")
    if path is not None and not path.is_file():
        raise TrackingError(
            f"no MLflow store at {path}: run an experiment first, send stored runs with `medexam track RUN`, "
            "or name another place with --runs-dir or --tracking-uri"
        )
    with open_store(tracking_uri) as client:
        return {
            experiment.name: view_address(f"http://{host}:{port}", experiment.experiment_id)
            for experiment in client.search_experiments()
            if experiment.experiment_id != "0"
        }


def serve_ui(tracking_uri: str, *, host: str, port: int) -> int:
    """Serve the UI until it ends or Ctrl-C; return its exit code, 0 after Ctrl-C."""
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", tracking_uri, "--workers", "1"]
    if (path := sqlite_path(tracking_uri)) is not None:
        command += ["--artifacts-destination", (path.parent / "mlartifacts").as_uri()]
    command += ["--host", host, "--port", str(port), "--uvicorn-opts", "--log-level=warning"]
    # A session of its own, so that Ctrl-C reaches the server and its workers once, through this process.
    process = subprocess.Popen(command, env={**os.environ, **_ENVIRONMENT}, start_new_session=True)  # noqa: S603
    old_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        signal.signal(signal.SIGTERM, old_handler)
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, end)
                process.wait(timeout=_SHUTDOWN_S)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
