"""An MLflow server on PostgreSQL that keeps the artifacts and asks for a password, by MLflow's own three variables."""

import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest
from fake_vllm import free_port

from medexam.errors import TrackingError
from medexam.experiments import default_tracking_uri
from medexam.experiments.track.runs import track
from medexam.experiments.track.store import own_tracking_uri
from waiting import BACKSTOP_S, until

PASSWORD = "a-long-password-1"
POSTGRES = shutil.which("postgres") or next(Path("/usr/lib/postgresql").glob("*/bin/postgres"), None)
"""Debian keeps it off the path."""


def test_the_store_is_that_of_mlflows_variable_or_the_runs_own(tmp_path, monkeypatch) -> None:
    assert default_tracking_uri(tmp_path) == own_tracking_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example:5000")
    assert default_tracking_uri(tmp_path) == "http://mlflow.example:5000"


def _as_owner(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


@pytest.fixture
def database():
    """The address of an empty PostgreSQL database."""
    assert POSTGRES is not None
    tools, port = Path(POSTGRES).resolve().parent, free_port()
    # Not below pytest's folder, which each session that starts closes to other users.
    with tempfile.TemporaryDirectory(prefix="medexam-postgres-") as folder:
        place = Path(folder)
        if os.geteuid() == 0:
            shutil.chown(place, "postgres")
        options = f"-p {port} -k {place} -c listen_addresses=127.0.0.1 -c fsync=off"
        control = [str(tools / "pg_ctl"), "-D", str(place / "data")]
        initialize = [str(tools / "initdb"), "-D", str(place / "data"), "-U", "mlflow", "-A", "trust"]
        subprocess.run(_as_owner(initialize), check=True, capture_output=True)
        start = [*control, "-o", options, "-l", str(place / "log"), "-w", "start"]
        subprocess.run(_as_owner(start), check=True, stdout=subprocess.DEVNULL)
        try:
            yield f"postgresql+psycopg://mlflow@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run(_as_owner([*control, "-m", "fast", "-w", "stop"]), check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def server(database, tmp_path):
    """The address of MLflow's server with basic authentication."""
    port = free_port()
    settings = tmp_path / "auth.ini"
    settings.write_text(
        f"[mlflow]\ndefault_permission = READ\ndatabase_uri = sqlite:///{tmp_path}/users.db\nadmin_username = admin\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
    )
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--backend-store-uri", database]
    command += ["--artifacts-destination", str(tmp_path / "artifacts"), "--port", str(port), "--workers", "1"]
    environment = {
        "MLFLOW_AUTH_CONFIG_PATH": str(settings),
        "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "secret",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def is_healthy() -> bool:
        assert process.poll() is None, "the server ended before it was healthy"
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=BACKSTOP_S) as answer:
                return answer.status == 200
        except OSError:
            return False

    try:
        until(is_healthy, "a healthy server")
        yield address
    finally:
        process.terminate()
        process.wait(timeout=BACKSTOP_S)


@pytest.mark.skipif(POSTGRES is None, reason="PostgreSQL is not installed (Debian: apt-get install postgresql)")
def test_a_server_on_postgresql_with_a_password_takes_runs_and_files(
    make_run, runs_dir, tmp_path, monkeypatch, request
) -> None:
    pytest.importorskip("psycopg")
    pytest.importorskip("flask_wtf")
    address = request.getfixturevalue("server")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "wrong")
    run = make_run({"kind": "zero_shot"}, "rrw")
    with pytest.raises(TrackingError, match="401"):
        track([run], tracking_uri=default_tracking_uri(runs_dir))
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    (tracked,) = track([run], tracking_uri=default_tracking_uri(runs_dir), page=True)
    from mlflow import MlflowClient

    client = MlflowClient(address)
    assert client.get_run(tracked.mlflow_run_id).data.metrics["accuracy"] == run.metrics.accuracy
    copy = client.download_artifacts(tracked.mlflow_run_id, "predictions.jsonl", str(tmp_path))
    assert Path(copy).read_bytes() == (run.folder.path / "predictions.jsonl").read_bytes()
    assert list((tmp_path / "artifacts").rglob("report.html")), "the server keeps the files"
