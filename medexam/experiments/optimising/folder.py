"""The folder of one optimisation: what was asked for, every call, every trial, and the best program.

`optimization.json` says what was asked for and how it ended, `calls.jsonl` holds each call of a model, `trials/` each
program with its predictions; `program.json`, `trials.json`, `demonstrations.md`, `report.md` and `curve.png` are made
from them. It is no run folder: nothing here was asked of the tested questions.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from medexam.errors import RunFolderError

RECORD = "optimization.json"
CALLS = "calls.jsonl"
TRIALS = "trials.json"
PROGRAMS = "trials"
DEMONSTRATIONS = "demonstrations.md"
REPORT = "report.md"
CURVE = "curve.png"


@dataclass(frozen=True)
class OptimizationFolder:
    """The files of one optimisation under `path`."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's name, which is the optimisation's id."""
        return self.path.name

    @property
    def programs(self) -> Path:
        """Where each trial has a folder."""
        return self.path / PROGRAMS

    def exists(self) -> bool:
        """Whether an optimisation was begun here."""
        return (self.path / RECORD).is_file()

    def create(self) -> None:
        """Make the folder; raises `RunFolderError` where that is not possible."""
        try:
            self.programs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(
                f"cannot write to {self.path.parent}: {error}; choose another place by --runs-dir or MEDEXAM_RUNS"
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one process; the system frees the lock of a process that dies."""
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunFolderError(f"{self.name} is being written by another process; wait for it") from None
        try:
            yield
        finally:
            lock.release()

    def read(self, name: str) -> dict[str, Any]:
        """One of the JSON files; raises `RunFolderError` where it cannot be read."""
        path = self.path / name
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunFolderError(f"cannot read {path}: {error}") from None
        if not isinstance(data, dict):
            raise RunFolderError(f"{path} is not a JSON object")
        return data

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write a JSON file whole or not at all."""
        self.write(name, (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all."""
        target = self.path / name
        draft = target.with_name(f".{name}.draft")
        try:
            draft.write_bytes(data)
            draft.replace(target)
        except OSError as error:
            raise RunFolderError(f"cannot write {target}: {error}") from None


def find_optimization(place: str, runs_dir: Path) -> OptimizationFolder:
    """The optimisation meant by its folder or by its id in `runs_dir`; raises `RunFolderError` where there is none."""
    for folder in (OptimizationFolder(Path(place).resolve()), OptimizationFolder(runs_dir / place)):
        if folder.exists():
            return folder
    raise RunFolderError(f"no optimisation {place} to resume here or in {runs_dir}: give its folder or its id")
