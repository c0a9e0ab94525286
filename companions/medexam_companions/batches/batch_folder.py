"""What lies on disk of a run's batches: the requests in OpenAI's batch format, what became of them, and the results.

In `batches/` of a run folder, batch N is `N.requests.jsonl`, `N.json` (its record) and, once it has ended,
`N.results.jsonl`. A request's `custom_id` is a hash of its body. So a run that asks the same again finds the reply, or
the batch that is underway, and nothing is submitted twice. This module knows files; it submits nothing.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from medexam.errors import CallError, RunFolderError
from medexam.files import UnreadableError, parse_json, read_json, write_whole
from medexam.frozen_model import FrozenModel
from medexam.serve import status_error
from medexam.text import hide_secrets, writable

BATCHES = "batches"
"""The folder of batches in a run folder."""
URL: Final = "/v1/chat/completions"
"""The address that every request of a batch is for."""
MOST_REQUESTS = 50_000
"""Of one batch, as OpenAI takes them."""
_ID_LENGTH = 40
_OK = 200


class BatchRecord(FrozenModel):
    """What is known of a batch, as its record keeps it."""

    requests: int
    file_id: str | None = None
    """The requests' file at the provider; None until it is there."""
    batch_id: str | None = None
    """The batch at the provider; None until it is made."""
    status: str = "new"
    """As the provider says."""


class Batch:
    """One batch, from its requests to its results."""

    def __init__(self, stem: Path, record: BatchRecord) -> None:
        self.record = record
        self.path = stem.with_suffix(".json")
        """The file of its record."""
        self.requests = stem.with_suffix(".requests.jsonl")
        self.results = stem.with_suffix(".results.jsonl")
        """In no order; it appears whole when the batch has ended."""

    def update(self, **changes: Any) -> None:
        """Change the record, in memory and on disk."""
        self.record = self.record.model_copy(update=changes)
        _write(self.path, self.record.model_dump_json(indent=2) + "\n")

    def end(self, results: bytes, status: str) -> None:
        """Keep the results; after this the batch is asked for no more."""
        _write(self.results, results)
        self.update(status=status)

    def read_ids(self) -> list[str]:
        """Read the `custom_id` of each request; raises `RunFolderError` for a file that is damaged."""
        try:
            return [parse_json(line)["custom_id"] for line in self.requests.read_bytes().splitlines()]
        except (OSError, UnreadableError, KeyError, TypeError) as error:
            raise RunFolderError(f"{self.requests} is damaged ({error}); remove {self.path} to ask it again") from None

    def read_results(self) -> dict[str, dict[str, Any] | CallError]:
        """Map each `custom_id` to the reply's body, or to the error if there is none; other lines are skipped."""
        results: dict[str, dict[str, Any] | CallError] = {}
        for line in self.results.read_bytes().splitlines():
            with suppress(UnreadableError, AttributeError, KeyError, TypeError):
                result = parse_json(line)
                results[result["custom_id"]] = _read_reply(result.get("response") or {}, result.get("error"))
        return results


class BatchFolder:
    """The batches of one run; a run's folder is held by one process."""

    def __init__(self, run: Path) -> None:
        self._path = run / BATCHES
        self.replies: dict[str, dict[str, Any]] = {}
        """`custom_id` -> the reply's body."""
        self.underway: list[Batch] = []
        """Batches of earlier invocations without results."""
        for batch in self._read():
            if batch.results.exists():
                self.replies |= {key: body for key, body in batch.read_results().items() if isinstance(body, dict)}
            elif batch.record.file_id is not None:
                self.underway.append(batch)
            else:
                batch.path.unlink()
                batch.requests.unlink(missing_ok=True)
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
        number = max((int(path.stem) for path in self._records()), default=0) + 1
        batch = Batch(self._path / f"{number}", BatchRecord(requests=len(lines)))
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
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error}") from None


def _read_reply(response: dict[str, Any], error: Any) -> dict[str, Any] | CallError:
    status, body = response.get("status_code"), response.get("body")
    if status == _OK and isinstance(body, dict) and not error:
        return body
    detail, code = error or body, None
    while isinstance(detail, dict):
        code = detail.get("code") or code
        detail = detail.get("error") or detail.get("message")
    words = hide_secrets(writable(str(detail or "the batch gives no reason")))
    return status_error(status or 500, words, code=code and str(code))
