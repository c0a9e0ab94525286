"""What the folders of runs and of optimizations share: made, held by one process, and files written whole.

Who may read and write what is made here the user's umask decides, as for any other result.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from filelock import FileLock, Timeout
from pydantic import ValidationError

from medexam.errors import RunBusyError, RunFolderError
from medexam.files import write_whole
from medexam.inputs import UnreadableError, read_record
from medexam.text import writable


def name_part(text: str) -> str:
    """Turn a text into a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "_", text)


def describe_fault(error: ValidationError) -> str:
    """Describe place and kind of the first thing that is wrong with a file."""
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}" if place else str(fault["msg"])


@dataclass(frozen=True)
class WorkFolder:
    """The files of one piece of work under `path`."""

    path: Path
    kind: ClassVar[str]
    """What the work is called in messages."""
    record: ClassVar[str]
    """The file that says what was asked for."""

    @classmethod
    def last_or_new(cls, words: Sequence[str], digest: str, parent: Path, *, fresh: bool) -> Self:
        """Return the last folder in `parent` of work of this digest and of the first of these words.

        The other words say to people what the work is, and identify nothing. A new folder without one, or if `fresh`.
        """
        form = re.compile(rf"{re.escape(name_part(words[0]))}-.*-{digest}(?:-(\d+))?")
        names = [path.name for path in parent.iterdir()] if parent.is_dir() else []
        folders = {int(match[1] or 1): cls(parent / name) for name in names if (match := form.fullmatch(name))}
        numbers = [number for number, folder in folders.items() if folder.exists()]
        if numbers and not fresh:
            return folders[max(numbers)]
        name = "-".join(map(name_part, [*words, digest]))
        return cls(parent / (f"{name}-{max(numbers) + 1}" if numbers else name))

    @property
    def name(self) -> str:
        """The folder's name, which is the work's id."""
        return self.path.name

    def exists(self) -> bool:
        """Return whether the work was begun here."""
        return (self.path / self.record).is_file()

    def create(self) -> None:
        """Make the folder; raises `RunFolderError` where that is not possible."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK):
                raise PermissionError(f"no permission to write in {self.path}")
        except OSError as error:
            raise RunFolderError(
                f"cannot write {self.kind}s to {self.path.parent}: {error.strerror or error}; choose another place by "
                "--runs-dir or MEDEXAM_RUNS"
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one process; the system frees the lock of a process that dies.

        Raises `RunBusyError` where another process holds it, and `RunFolderError` where the folder cannot be written.
        """
        try:
            # A user who may write in the folder may continue the run.
            lock = FileLock(self.path / ".lock", mode=self.path.stat().st_mode & 0o666)
            # Not waited for: the other process may run for hours, and its answers would be asked again.
            lock.acquire(timeout=0)
        except Timeout:
            raise RunBusyError(
                f"{self.kind} {self.path.name} is being written by another process; wait for it, or start another "
                "with --fresh"
            ) from None
        except OSError as error:
            raise RunFolderError(f"cannot write {self.path}: {error.strerror}; make it writable") from None
        try:
            yield
        finally:
            lock.release()

    def read_json(self, name: str) -> dict[str, Any]:
        """Read one of the JSON files; raises `RunFolderError` where it cannot be read."""
        path = self.path / name
        try:
            data = read_record(path)
        except FileNotFoundError:
            raise RunFolderError(f"{self.path} holds no {name}: it is not a finished {self.kind} folder") from None
        except (OSError, UnreadableError) as error:
            raise RunFolderError(f"cannot read {path}: {error}") from None
        if not isinstance(data, dict):
            raise RunFolderError(f"{path} is not a JSON object")
        return data

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write one JSON file whole or not at all."""
        self.write_text(name, json.dumps(writable(data), indent=2, ensure_ascii=False, sort_keys=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write one text file whole or not at all."""
        self.write_bytes(name, writable(text).encode("utf-8"))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write one file whole or not at all."""
        target = self.path / name
        try:
            write_whole(target, data)
        except OSError as error:
            raise RunFolderError(f"cannot write {target}: {error.strerror or error}") from None
