"""What the folders of runs and of optimisations share: made, held by one process, and files written whole."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock, Timeout

from medexam.errors import RunFolderError


@dataclass(frozen=True)
class WorkFolder:
    """The files of one piece of work under `path`."""

    path: Path
    kind: ClassVar[str]
    """What the work is called in messages."""

    def create(self) -> None:
        """Make the folder; raises `RunFolderError` where that is not possible."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK):
                raise PermissionError(f"no permission to write in {self.path}")
        except OSError as error:
            raise RunFolderError(
                f"cannot write {self.kind}s to {self.path.parent}: {error}; choose another place by --runs-dir or "
                "MEDEXAM_RUNS"
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one process; the system frees the lock of a process that dies."""
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunFolderError(
                f"{self.kind} {self.path.name} is being written by another process; wait for it, or start another "
                "with --fresh"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write one JSON file whole or not at all."""
        self.write_text(name, json.dumps(data, indent=2, ensure_ascii=False, sort_keys=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write one text file whole or not at all."""
        self.write_bytes(name, text.encode("utf-8"))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write one file whole or not at all."""
        target = self.path / name
        draft = target.with_name(f".{name}.draft")
        try:
            draft.write_bytes(data)
            draft.replace(target)
        except OSError as error:
            raise RunFolderError(f"cannot write {target}: {error}") from None
