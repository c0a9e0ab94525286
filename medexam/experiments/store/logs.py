"""Logs to which lines are appended: predictions, one line each, and the turns that many of their calls share.

A torn last line, left by a process that was killed while writing, counts as not written; a line that is damaged
anywhere else is an error, and so is one that another run wrote.

A turn, such as a system message, stands whole in the first line that has it. From the second line on it is
`{"role": ..., "same": HASH}`, and a file beside the log holds its words. Within a line, a turn is whole once.
"""

import hashlib
import json
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic_core import PydanticSerializationError, to_json

from medexam.errors import RunFolderError
from medexam.model_calls import Reading
from medexam.predictions import Prediction
from medexam.predictions.prediction import as_read
from medexam.text import count_of, writable

_SAME = "same"
_REMEMBERED = 10_000
"""Turns that are known for having been written once; what many calls share comes again sooner."""
_SHORTEST = 40
"""Characters of a turn that is worth a reference."""
_TURNS_LOST = "restore the file, or start another run with --fresh"

Parsed = TypeVar("Parsed")


def json_bytes(value: Any, **settings: Any) -> bytes:
    """Write `value`, JSON-ready, in UTF-8; half of a surrogate pair becomes its escape."""
    try:
        return to_json(value, **settings)
    except PydanticSerializationError:
        return to_json(writable(value), **settings)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `RunFolderError` where the system refuses to write `path` in the block."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"cannot write {path}: {error.strerror or error}; what is there is kept: make room or make it writable, or "
            "choose another place by --runs-dir or MEDEXAM_RUNS, and run the same command again"
        ) from None


def parse_lines(
    path: Path, parse: Callable[[bytes], Parsed], ways_out: str = "remove the line to ask it again"
) -> Iterator[tuple[int, int, Parsed]]:
    """Yield each whole line's number, the byte at which it begins and what `parse` makes of it; none without a file.

    Raises `RunFolderError`, ending with `ways_out`, for a line that `parse` refuses by `ValueError`, `KeyError` or
    `TypeError`.
    """
    if not path.exists():
        return
    start = 0
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                parsed = parse(line)
            except (ValueError, KeyError, TypeError) as error:
                from pydantic import ValidationError  # not above: `medexam --help` imports no pydantic

                detail = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
                raise RunFolderError(f"{path}, line {number} is damaged ({detail}); {ways_out}") from None
            yield number, start, parsed
            start += len(line)


def cut_torn_line(path: Path) -> None:
    """Cut off what a dead process left behind the last whole line; raises `OSError`."""
    if not path.exists():
        return
    with path.open("rb+") as stream:
        if stream.seek(0, os.SEEK_END):
            # Searched from the end: the log of a large run takes long to read.
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                end = content.rfind(b"\n") + 1
            stream.truncate(end)


def _hash_turn(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def _parse_turn(line: bytes) -> tuple[str, str]:
    turn = json.loads(line)
    if _hash_turn(turn["words"]) != turn["hash"]:
        raise ValueError("its words are not those of its hash")
    return turn["hash"], turn["words"]


class _Turns(dict[str, str]):
    """The words of each turn that lie in the file beside a log, by their hash.

    A turn that is not there is looked for once more: the file grows while its run continues.
    """

    def __init__(self, log: Path) -> None:
        self.path = log.with_name("prompts.jsonl") if log.stem == "predictions" else log.with_suffix(".prompts")
        self._read()

    def __missing__(self, key: str) -> str:
        self._read()
        if key not in self:
            raise RunFolderError(f"{self.path} lacks turn {key}, which stored calls were sent: {_TURNS_LOST}")
        return self[key]

    def _read(self) -> None:
        self.update(turn for _, _, turn in parse_lines(self.path, _parse_turn, _TURNS_LOST))

    def parse_prediction(self, line: bytes) -> Prediction:
        """Read a line of the log, with the words of its turns; raises `ValueError`."""
        prediction = Prediction.model_validate_json(line)
        turns = [turn for call in prediction.calls for turn in call.messages]
        in_line: dict[str, str] = {}
        for turn in turns:
            if key := turn.pop(_SAME, None):
                if key not in self and not in_line:
                    in_line = {_hash_turn(one["content"]): one["content"] for one in turns if "content" in one}
                turn["content"] = in_line.get(key) or self[key]
        return prediction


def scan_predictions(path: Path, spec_digest: str | None, reading: Reading) -> Iterator[tuple[int, Prediction]]:
    """Yield the byte at which each line begins, and its prediction under a reading; nothing without a file.

    Raises `RunFolderError` where a line was written by another run than that of `spec_digest`, by default that of the
    first line, or where one that is not a torn last one is damaged.
    """
    for number, start, prediction in parse_lines(path, _Turns(path).parse_prediction):
        spec_digest = spec_digest or prediction.spec_digest
        if prediction.spec_digest != spec_digest:
            raise RunFolderError(
                f"{path}, line {number} belongs to another run (digest {prediction.spec_digest}, and this run's is "
                f"{spec_digest}): move it to the folder of that run, or remove it to ask {prediction.question} again"
            )
        yield start, as_read(prediction, reading)


class StoredPredictions(Mapping[str, Prediction]):
    """The last prediction of each question by key, each read from the disk when it is looked at.

    What is appended after the start is not seen.
    """

    def __init__(self, path: Path, spec_digest: str | None, reading: Reading) -> None:
        self._path, self._reading, self._turns = path, reading, _Turns(path)
        predictions = scan_predictions(path, spec_digest, reading)
        self._starts = {prediction.question: start for start, prediction in predictions}

    def __getitem__(self, key: str) -> Prediction:
        line = b""
        with suppress(OSError), self._path.open("rb") as stream:
            stream.seek(self._starts[key])
            line = stream.readline()
        if not line.endswith(b"\n"):
            raise RunFolderError(f"the prediction of {key} is no longer in its file, which was changed")
        return as_read(self._turns.parse_prediction(line), self._reading)

    def __contains__(self, key: object) -> bool:
        return key in self._starts

    def __iter__(self) -> Iterator[str]:
        return iter(self._starts)

    def __len__(self) -> int:
        return len(self._starts)


class PredictionLog:
    """Appends predictions as lines to a file and flushes them to the disk, at the end of its block too.

    What a dead process left torn is cut off first. Without `keeps_prompts`, lines are without what was sent. Raises
    `RunFolderError` where the file cannot be written.
    """

    def __init__(self, path: Path, *, keeps_prompts: bool = True) -> None:
        self._path, self._keeps_prompts, self._lines = path, keeps_prompts, list[bytes]()
        turns = _Turns(path)
        self._prompts, self._turns = turns.path, list[bytes]()
        self._stored, self._seen = set(turns), set[str]()
        """Turns that lie beside the log, and turns that a line has whole."""
        with writing(path):
            for each in (path, self._prompts):
                cut_torn_line(each)
            self._stream = path.open("ab")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._stream:
            self.flush()

    def append(self, prediction: Prediction) -> None:
        """Queue one line; `flush` puts it on the disk."""
        if not self._keeps_prompts:
            calls = tuple(replace(call, messages=(), prompt=None, texts=call.texts and ()) for call in prediction.calls)
            prediction = prediction.model_copy(update={"calls": calls})
        document, in_line = prediction.to_json(), set[str]()
        for call in document.get("calls", ()):
            for turn in call.get("messages", ()):
                if len(turn["content"]) < _SHORTEST:
                    continue
                key = _hash_turn(turn["content"])
                if key in self._seen and key not in self._stored:
                    self._stored.add(key)
                    self._turns.append(json_bytes({"hash": key, "words": turn["content"]}) + b"\n")
                if key in self._stored or key in in_line:
                    del turn["content"]
                    turn[_SAME] = key
                in_line.add(key)
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()
        self._seen |= in_line
        # One write and one fsync a batch: a sync for each answer would be the slowest part of a fast run.
        self._lines.append(json_bytes(document) + b"\n")

    def flush(self) -> None:
        """Put all queued lines on the disk.

        Raises `RunFolderError` where they do not fit: none of them is there then, and all stay queued. Raises it also
        if the file was removed or moved since it was opened.
        """
        if not self._lines:
            return
        # A file that has lost its name can still be written, but nobody reads it again.
        if not self._path.exists() or not os.path.samestat(os.fstat(self._stream.fileno()), self._path.stat()):
            raise RunFolderError(
                f"{self._path} was removed or moved while answers were written to it, so the run stops: "
                f"{count_of(len(self._lines), 'answer')} of now cannot be kept; put it back where it was, and run the "
                "same command again"
            )
        with writing(self._path):
            if self._turns:
                # Lines refer to turns, which are there first.
                with self._prompts.open("ab") as stream:
                    _append_whole(stream.fileno(), b"".join(self._turns))
                self._turns.clear()
            _append_whole(self._stream.fileno(), b"".join(self._lines))
            self._lines.clear()


def _append_whole(descriptor: int, batch: bytes) -> None:
    """Put a batch on the disk, or leave the file as it was; raises `OSError`."""
    end = os.fstat(descriptor).st_size
    try:
        while batch:
            batch = batch[os.write(descriptor, batch) :]
        os.fsync(descriptor)
    except OSError:
        # The batch stays queued, and would stand in the file twice.
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise
