"""Processes that die, and a tracking server that is not there: no prediction is lost, and none is asked again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from medexam.experiments.store.run_folder import PREDICTIONS

pytestmark = pytest.mark.chaos

MEDEXAM = "from medexam.cli import run_command; run_command()"
FULL = 12_000
"""Bytes that a file may have on the full disk: more than `spec.json` has, fewer than the predictions."""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """600 questions of HEAD-QA where its data are here, else the 120 that are always here."""
    (tmp_path / "replies.yaml").write_text('{"a": "{Answer: 1}", "*": "{Answer: 2}"}')
    dataset = {"name": "headqa_sample", "language": "en"}
    if os.environ.get("MEDEXAM_DATA"):
        dataset = {"name": "headqa_v1", "language": "en", "limit": 600}
    document = {
        "name": "killed",
        "dataset": dataset,
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": {"kind": "zero_shot"},
    }
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(document))
    return path


def call(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


def read(runs_dir: Path) -> list[str]:
    """The keys of all lines on disk."""
    (path,) = runs_dir.glob(f"*/{PREDICTIONS}")
    return [json.loads(line)["question"] for line in path.read_text().splitlines()]


def test_runs_that_are_killed_25_times_come_out_as_others() -> None:
    done = call("-m", "soak", "--works", "run", "--kills", 25, "--seed", 5, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["commands"]["run"]["kills"] >= 25
    assert found["failed"] == []


def test_without_a_tracking_server_the_run_is_complete_on_disk(spec, tmp_path) -> None:
    runs = ("--limit", 6, "--runs-dir", tmp_path / "runs", "--tracking-uri", "http://127.0.0.1:9", "--json")
    done = call("-c", MEDEXAM, "run", spec, *runs, MLFLOW_HTTP_REQUEST_MAX_RETRIES="0")
    assert done.returncode == 0
    assert len(read(tmp_path / "runs")) == 6
    (line,) = [line for line in done.stderr.splitlines() if "MLflow" in line and "took nothing" in line]
    assert "medexam track" in line


def test_a_full_disk_loses_nothing_that_was_on_it(spec, tmp_path) -> None:
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({FULL}, {FULL})); {MEDEXAM}"

    def run(program: str, limit: int) -> subprocess.CompletedProcess[str]:
        where = ("--runs-dir", tmp_path / "runs", "--tracking-uri", "http://127.0.0.1:9")
        return call("-c", program, "run", spec, "--limit", limit, *where, MLFLOW_HTTP_REQUEST_MAX_RETRIES="0")

    assert run(MEDEXAM, 10).returncode == 0
    (path,) = (tmp_path / "runs").glob(f"*/{PREDICTIONS}")
    before = path.read_bytes()
    full = run(limited, 60)
    assert full.returncode == 2
    assert len([line for line in full.stderr.splitlines() if line.startswith("medexam: cannot write")]) == 1
    assert "Traceback" not in full.stderr
    assert path.read_bytes() == before
    done = run(MEDEXAM, 60)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(before)
    keys = read(tmp_path / "runs")
    assert len(keys) == len(set(keys)) == 60
