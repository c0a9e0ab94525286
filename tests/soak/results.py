"""What lies in a command's folder: what is kept while it works, and what came out in the end."""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from medexam.metrics import TIMES

UNLIKE = {"seconds", "started_at", "created", "when", "environment", "latency_s", "waiting_s", *TIMES}
"""Names of what differs between two runs that came out alike."""


def lines(pattern: str) -> Callable[[Path], list[str]]:
    """The whole lines of all files that fit, each with its file."""

    def read_lines(folder: Path) -> list[str]:
        found = []
        for path in filter(Path.is_file, folder.glob(pattern)):
            data = path.read_bytes()
            found += [f"{path}: {line!r}" for line in data[: data.rfind(b"\n") + 1].splitlines()]
        return found

    return read_lines


def encoded(folder: Path) -> list[str]:
    """The passages whose vectors are safe, by hundreds."""
    for name, find in (("manifest.json", lambda it: it["corpus"]["count"]), ("progress.json", lambda it: it["done"])):
        if (folder / "index" / name).exists():
            return [f"passages from {begin}" for begin in range(0, find(read(folder / "index" / name)), 100)]
    return []


def runs(folder: Path, pattern: str = "runs/*/predictions.jsonl") -> Any:
    """Each run's metrics, every answer, the rows of its table, and the questions that stand there twice."""
    import pyarrow.parquet as pq

    found = []
    for path in sorted(folder.glob(pattern)):
        predictions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        said = {one["question"]: [one["status"], one.get("answer"), one.get("reply")] for one in predictions}
        again = [key for key, count in _count(predictions).items() if count > 1]
        rows = pq.read_table(path.with_name("predictions.parquet")).num_rows
        metrics = timeless(read(path.with_name("metrics.json")))
        found.append(
            [path.parent.name, sorted(said.items()), metrics, rows, again, path.with_name("report.md").exists()]
        )
    return found


def optimizations(folder: Path) -> Any:
    """The trials and the best program."""
    (home,) = (path.parent for path in folder.glob("runs/*/optimization.json"))
    record = read(home / "optimization.json")
    return [timeless(read(home / "trials.json")), read(home / "program.json"), record["ending"], record["spent"]]


def translations(folder: Path) -> Any:
    """What was chosen, and the data set."""
    return [read(folder / "out" / "selection.json"), hashes(folder / "out", "*.parquet")]


def indexes(folder: Path) -> Any:
    """The vectors, the passages and the manifest."""
    return [hashes(folder / "index", "*.npy", "*.jsonl"), timeless(read(folder / "index" / "manifest.json"))]


def runs_and_copies(folder: Path) -> Any:
    """The runs, and what MLflow has of them."""
    return [runs(folder), copies(folder / "runs")]


def copies(runs_dir: Path) -> Any:
    """What MLflow's store has of each run: its id, its status, and the numbers of its metrics and parameters."""
    with closing(sqlite3.connect(runs_dir / "mlflow.db")) as database:
        return database.execute(
            "select tags.value, runs.status, (select count(*) from latest_metrics where run_uuid = runs.run_uuid), "
            "(select count(*) from params where run_uuid = runs.run_uuid) from runs join tags using (run_uuid) "
            "where tags.key = 'medexam.run_id' and lifecycle_stage = 'active' order by 1"
        ).fetchall()


def hashes(folder: Path, *patterns: str) -> dict[str, str]:
    """SHA-256 of the files that fit, by their place in the folder."""
    found = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def timeless(value: Any) -> Any:
    """A document without what differs from one time to the next."""
    if isinstance(value, dict):
        return {name: timeless(one) for name, one in value.items() if name not in UNLIKE}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def _count(predictions: list[dict[str, Any]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in predictions:
        counts[one["question"]] = counts.get(one["question"], 0) + (one["status"] != "failed")
    return counts


def files_in(folder: Path) -> dict[str, int]:
    """The size of each file, by its place in the folder."""
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
