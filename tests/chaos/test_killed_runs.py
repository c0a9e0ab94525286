"""Processes that die, and a tracking server that is not there: no prediction is lost, and none is asked again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from medexam.experiments.store.run_folder import METRICS, PREDICTIONS

pytestmark = pytest.mark.chaos

TESTS = Path(__file__).parents[1]
MEDEXAM = "from medexam.cli.main import main; main()"
FULL = 12_000
"""Bytes that a file may have on the full disk: more than `spec.json` has, fewer than the predictions."""
LATENCIES = ("latency_p50_s", "latency_p95_s")


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
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]), **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


def read(runs_dir: Path) -> tuple[list[str], dict[str, object]]:
    """The keys of all lines on disk, and the metrics without how long it took."""
    (folder,) = [path.parent for path in runs_dir.glob(f"*/{PREDICTIONS}")]
    keys = [json.loads(line)["question"] for line in (folder / PREDICTIONS).read_text().splitlines()]
    metrics = json.loads((folder / METRICS).read_text())
    return keys, {name: value for name, value in metrics.items() if name not in LATENCIES}


def test_killed_25_times_and_run_again(spec, tmp_path) -> None:
    seen = []
    for name, kills in (("killed", 25), ("whole", 0)):
        done = call(TESTS / "chaos" / "killed_runs.py", spec, tmp_path / name, kills)
        assert done.returncode == 0, done.stderr
        seen.append(json.loads(done.stdout))
    (keys, metrics), (whole_keys, whole_metrics) = read(tmp_path / "killed"), read(tmp_path / "whole")
    assert seen[0]["status"] == seen[0]["lost"] == 0
    assert sum(after > before for before, after in zip(seen[0]["lines"], seen[0]["lines"][1:], strict=False)) >= 5
    assert len(keys) == len(set(keys)) == len(whole_keys)
    assert metrics == whole_metrics


def test_without_a_tracking_server_the_run_is_complete_on_disk(spec, tmp_path) -> None:
    runs = ("--limit", 6, "--runs-dir", tmp_path / "runs", "--tracking-uri", "http://127.0.0.1:9", "--json")
    done = call("-c", MEDEXAM, "run", spec, *runs, MLFLOW_HTTP_REQUEST_MAX_RETRIES="0")
    assert done.returncode == 0
    assert len(read(tmp_path / "runs")[0]) == 6
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
    keys = read(tmp_path / "runs")[0]
    assert len(keys) == len(set(keys)) == 60
