"""What lies on disk of a run's batches: the requests in OpenAI's batch format, what became of them, and the results.

In `batches/` of a run folder, batch N is `N.requests.jsonl`, `N.json` (its record) and, once it has ended,
`N.results.jsonl`. A request's `custom_id` is a hash of its body. So a run that asks the same again finds the reply, or
the batch that is underway, and nothing is submitted twice. This module knows files; it submits nothing.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from medexam.errors import CallError, RunFolderError
from medexam.files import write_whole
from medexam.frozen_model import FrozenModel
from medexam.inputs import UnreadableError, parse_json, read_json
from medexam_companions.batches.results import read_result

BATCHES = "batches"
"""The folder of batches in a run folder."""
URL: Final = "/v1/chat/completions"
"""The address that every request of a batch is for."""
_ID_LENGTH = 40


class BatchRecord(FrozenModel):
    """What is known of a batch, as its record keeps it."""

    requests: int
    written_at: str
    """UTC."""
    file_id: str | None = None
    """The requests' file at the provider; None until it is there."""
    batch_id: str | None = None
    """The batch at the provider; None until it is made, and for a process of this machine."""
    status: str = "new"
    """As the provider says."""
    ended_at: str | None = None
    """UTC; None until the results are here."""


class Batch:
    """One batch, from its requests to its results."""

    def __init__(self, stem: Path, record: BatchRecord) -> None:
        self._stem = stem
        self.record = record

    @property
    def requests(self) -> Path:
        """The file of its requests."""
        return self._stem.with_name(f"{self._stem.name}.requests.jsonl")

    @property
    def results(self) -> Path:
        """The file of its results, in no order; it appears whole when the batch has ended."""
        return self._stem.with_name(f"{self._stem.name}.results.jsonl")

    @property
    def path(self) -> Path:
        """The file of its record."""
        return self._stem.with_name(f"{self._stem.name}.json")

    @property
    def log(self) -> Path:
        """Where a process that works it off writes its output."""
        return self._stem.with_name(f"{self._stem.name}.log")

    def update(self, **changes: Any) -> None:
        """Change the record, in memory and on disk."""
        self.record = self.record.model_copy(update=changes)
        _write(self.path, self.record.model_dump_json(indent=2) + "\n")

    def end(self, results: bytes, status: str) -> None:
        """Keep the results; after this the batch is asked for no more."""
        _write(self.results, results)
        self.update(status=status, ended_at=_now())

    def read_ids(self) -> list[str]:
        """Read the `custom_id` of each request; raises `RunFolderError` for a file that is damaged."""
        try:
            return [parse_json(line)["custom_id"] for line in self.requests.read_bytes().splitlines()]
        except (OSError, UnreadableError, KeyError, TypeError) as error:
            raise RunFolderError(f"{self.requests} is damaged ({error}); remove {self.path} to ask it again") from None

    def read_results(self) -> Iterator[tuple[str, dict[str, Any] | CallError]]:
        """Yield the `custom_id` of each result with the reply's body, or with the error if there is none."""
        for line in self.results.read_bytes().splitlines():
            result = read_result(line)
            if result is not None:
                yield result

    def discard(self) -> None:
        """Remove what is left of a batch that was never handed over."""
        for path in (self.path, self.requests):
            path.unlink(missing_ok=True)


class BatchFolder:
    """The batches of one run; a run's folder is held by one process."""

    def __init__(self, run: Path, *, resumes: bool) -> None:
        """Open the batches of a run; `resumes` says whether a batch goes on without this process, so that one without
        results is underway.
        """
        self._path = run / BATCHES
        self.replies: dict[str, dict[str, Any]] = {}
        """`custom_id` -> the reply's body."""
        self.underway: list[Batch] = []
        """Batches of earlier invocations without results."""
        for batch in self._read():
            if batch.results.exists():
                self.replies |= {key: body for key, body in batch.read_results() if isinstance(body, dict)}
            elif resumes and batch.record.file_id is not None:
                self.underway.append(batch)
            else:
                batch.discard()
        self._request_counts: Counter[str] = Counter()

    def name_request(self, body: Mapping[str, Any]) -> tuple[str, bytes]:
        """Return the `custom_id` of a request and its line; equal requests are numbered in the order of asking."""
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_LENGTH]
        number = self._request_counts[key]
        self._request_counts[key] += 1
        key = f"{key}-{number}" if number else key
        return key, json.dumps({"custom_id": key, "method": "POST", "url": URL, "body": body}).encode()

    def write(self, lines: Iterable[bytes]) -> Batch:
        """Write a new batch of these requests to disk; raises `RunFolderError`."""
        lines = list(lines)
        try:
            self._path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"cannot write {self._path}: {error.strerror}") from None
        number = max((int(path.stem) for path in self._records()), default=0) + 1
        batch = Batch(self._path / f"{number}", BatchRecord(requests=len(lines), written_at=_now()))
        _write(batch.requests, b"\n".join(lines) + b"\n")
        batch.update()
        return batch

    def _read(self) -> Iterator[Batch]:
        for path in self._records():
            try:
                yield Batch(path.with_suffix(""), BatchRecord.model_validate(read_json(path)))
            except (OSError, UnreadableError, ValueError) as error:
                raise RunFolderError(f"cannot read {path}: {error}; remove it to ask its requests again") from None

    def _records(self) -> list[Path]:
        return sorted(
            (path for path in self._path.glob("*.json") if path.stem.isdigit()), key=lambda path: int(path.stem)
        )


def _write(path: Path, content: str | bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error}") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
