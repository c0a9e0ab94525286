"""Logs to which lines are appended: predictions, one line each, and the turns that many of their calls share.

A torn last line, left by a process that was killed while writing, counts as not written; a line that is damaged
anywhere else is an error, and so is one that another run wrote. Which file it is and what the predictions are worth is
known elsewhere.

A turn, such as a system message, stands whole in the first line that has it. From the second line on it is
`{"role": ..., "same": HASH}`, and a file beside the log holds its words. Within a line, a turn is whole once.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from medexam.errors import RunFolderError
from medexam.inputs import UnreadableError, check_regular
from medexam.predictions import Prediction

PROMPTS = "prompts.jsonl"
_SAME = "same"
_BLOCK = 4096
"""Bytes read at once where a file's last line is searched, or one line is looked up; most lines are shorter."""
_REMEMBERED = 10_000
"""Turns that are known for having been written once; what many calls share comes again sooner."""
_SHORTEST = 40
"""Characters of a turn that is worth a reference."""

Parsed = TypeVar("Parsed")


def parse_lines(
    path: Path, parse: Callable[[bytes], Parsed], ways_out: str = "remove the line to ask it again"
) -> Iterator[tuple[int, int, Parsed]]:
    """Yield each whole line's number, the byte at which it begins and what `parse` makes of it; none without a file.

    Raises `RunFolderError` where something else than a file lies there and, ending with `ways_out`, for a line that
    `parse` refuses by `ValueError`, `KeyError` or `TypeError`.
    """
    if not path.exists():
        return
    check_file(path)
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
    """Cut off what a dead process left behind the last whole line; only the file's end is read.

    Raises `OSError`, and `RunFolderError` where something else than a file lies there.
    """
    if not path.exists():
        return
    check_file(path)
    with path.open("rb+") as stream:
        size = end = stream.seek(0, os.SEEK_END)
        # Backwards from the end: the log of a large run takes long to read.
        while end:
            start = max(0, end - _BLOCK)
            stream.seek(start)
            newline = stream.read(end - start).rfind(b"\n")
            end = start if newline < 0 else start + newline + 1
            if newline >= 0:
                break
        if end < size:
            stream.truncate(end)


def check_file(path: Path) -> None:
    """Raise `RunFolderError` where something else than a file lies at `path`, and `OSError` where nothing does."""
    try:
        check_regular(path)
    except UnreadableError as error:
        raise RunFolderError(f"{path} {error}") from None


def hash_turn(words: str) -> str:
    """Return what a reference calls a turn's words."""
    return hashlib.sha256(words.encode()).hexdigest()[:16]


class Turns(dict[str, str]):
    """The words of each turn that lie in the file beside a log, by their hash; empty without a file.

    A turn that is not there is looked for once more: the file grows while its run continues. Raises `RunFolderError`
    where the file is damaged, and where it does not hold the turn.
    """

    def __init__(self, log: Path) -> None:
        """Read the file: `prompts.jsonl` of a run, `PART.prompts` of a shard."""
        self.path = log.with_name(PROMPTS) if log.stem == "predictions" else log.with_suffix(".prompts")
        self._read()

    def __missing__(self, key: str) -> str:
        self._read()
        if key not in self:
            raise RunFolderError(
                f"{self.path} lacks turn {key}, which stored calls were sent: restore the file, or start another run "
                "with --fresh"
            )
        return self[key]

    def _read(self) -> None:
        ways_out = "restore the file, or start another run with --fresh"
        self.update(turn for _, _, turn in parse_lines(self.path, _parse_turn, ways_out))

    def parse_prediction(self, line: bytes) -> Prediction:
        """Read a line of the log, with the words of its turns; raises `ValueError`."""
        prediction, in_line = Prediction.model_validate_json(line), dict[str, str]()
        for call in prediction.calls:
            for turn in call.messages:
                if (key := turn.pop(_SAME, None)) is None:
                    continue
                if key not in self and not in_line:
                    words = (one["content"] for call in prediction.calls for one in call.messages if "content" in one)
                    in_line = {hash_turn(one): one for one in words}
                turn["content"] = self.get(key) or in_line.get(key) or self[key]
        return prediction


def _parse_turn(line: bytes) -> tuple[str, str]:
    turn = json.loads(line)
    if hash_turn(turn["words"]) != turn["hash"]:
        raise ValueError("its words are not those of its hash")
    return turn["hash"], turn["words"]


def scan_predictions(path: Path, spec_digest: str) -> Iterator[tuple[int, Prediction]]:
    """Yield each line's prediction behind the byte at which the line begins, in the file's order; none without a file.

    `spec_digest` is that of the run whose lines they are. Raises `RunFolderError` where a line belongs to another, or
    one that is not a torn last one is damaged.
    """
    for number, start, prediction in parse_lines(path, Turns(path).parse_prediction):
        if prediction.spec_digest != spec_digest:
            check_own(prediction, spec_digest, f"{path}, line {number}")
        yield start, prediction


def check_own(prediction: Prediction, spec_digest: str, place: str) -> None:
    """Raise `RunFolderError`, naming the `place` where it was found, for a prediction that another run made."""
    if prediction.spec_digest != spec_digest:
        raise RunFolderError(
            f"{place} belongs to another run (digest {prediction.spec_digest}, and this run's is {spec_digest}): "
            f"move it to the folder of that run, or remove it to ask {prediction.question} again"
        )


class StoredPredictions(Mapping[str, Prediction]):
    """The last prediction of each question by key, each read from the disk when it is looked at.

    What is appended after the start is not seen.
    """

    def __init__(self, path: Path, descriptor: int, spec_digest: str, *, prompts: bool) -> None:
        """Find the lines; `descriptor` is the file at `path`, open for as long as predictions are looked at.

        Without `prompts`, calls are without what was sent. Raises as `scan_predictions` does.
        """
        self._descriptor, self._prompts, self._turns = descriptor, prompts, Turns(path)
        self._starts = {prediction.question: start for start, prediction in scan_predictions(path, spec_digest)}

    def __getitem__(self, key: str) -> Prediction:
        start, line = self._starts[key], b""
        # `pread` moves no position that several threads would share.
        while b"\n" not in line:
            chunk = os.pread(self._descriptor, max(_BLOCK, len(line)), start + len(line))
            if not chunk:
                raise RunFolderError(f"the prediction of {key} is no longer in its file, which was changed")
            line += chunk
        prediction = self._turns.parse_prediction(line[: line.index(b"\n")])
        for call in () if self._prompts else prediction.calls:
            call.drop_prompt()
        return prediction

    def __contains__(self, key: object) -> bool:
        return key in self._starts

    def __iter__(self) -> Iterator[str]:
        return iter(self._starts)

    def __len__(self) -> int:
        return len(self._starts)


class PredictionLog:
    """Appends predictions as lines and flushes them to the disk."""

    def __init__(self, path: Path, descriptor: int, *, keeps_prompts: bool) -> None:
        """Take `descriptor` as the open end of the file at `path`."""
        self._path, self._descriptor, self._keeps_prompts = path, descriptor, keeps_prompts
        self._prompts = (turns := Turns(path)).path
        cut_torn_line(self._prompts)
        self._known, self._seen = set(turns), set[str]()
        """Turns that lie beside the log, and turns that a line has whole."""
        self._turns: list[bytes] = []
        self._lines: list[bytes] = []

    def append(self, prediction: Prediction) -> None:
        """Queue one line; `flush` puts it on the disk."""
        if not self._keeps_prompts:
            calls = tuple(replace(call, messages=(), prompt=None, texts=call.texts and ()) for call in prediction.calls)
            prediction = prediction.model_copy(update={"calls": calls})
        # One write and one fsync a batch: a sync for each answer would be the slowest part of a fast run.
        self._lines.append(self._write(prediction))

    def flush(self) -> None:
        """Put all queued lines on the disk.

        Raises `RunFolderError` where they do not fit: none of them is there then, and all stay queued. Raises it also
        if the file was removed or moved since it was opened.
        """
        if not self._lines:
            return
        self._check_place()
        try:
            if self._turns:
                # Lines refer to turns, which are there first.
                with self._prompts.open("ab") as stream:
                    _append_whole(stream.fileno(), b"".join(self._turns))
                self._turns.clear()
            _append_whole(self._descriptor, b"".join(self._lines))
        except OSError as error:
            raise RunFolderError(
                f"cannot write {self._path}: {error.strerror}; the answers so far are kept: make room, and run the "
                "same command again"
            ) from None
        self._lines.clear()

    def _write(self, prediction: Prediction) -> bytes:
        if not any(call.messages for call in prediction.calls):
            return prediction.to_line()
        document, in_line = prediction.to_json(), set[str]()
        for turn in (turn for call in document["calls"] for turn in call.get("messages", ())):
            if len(turn["content"]) < _SHORTEST:
                continue
            key = hash_turn(turn["content"])
            if key in self._seen and key not in self._known:
                self._known.add(key)
                entry = {"hash": key, "words": turn["content"]}
                self._turns.append(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
            if key in self._known or key in in_line:
                del turn["content"]
                turn[_SAME] = key
            in_line.add(key)
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()
        self._seen |= in_line
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _check_place(self) -> None:
        # A file that has lost its name can still be written, but nobody reads it again.
        with suppress(OSError):
            if os.path.samestat(os.fstat(self._descriptor), self._path.stat()):
                return
        count = len(self._lines)
        loss = "1 answer since is lost" if count == 1 else f"{count:,} answers since are lost"
        raise RunFolderError(
            f"{self._path} was removed or moved while answers were written to it, so the run stops: {loss}; put it "
            "back where it was, and run the same command again"
        )


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


@contextmanager
def open_log(path: Path, *, keeps_prompts: bool = True) -> Iterator[PredictionLog]:
    """Open a log that appends to a file, without what was sent if it is not to be kept; what a dead process left torn
    is cut off first.

    Raises `RunFolderError` where the file cannot be written.
    """
    try:
        cut_torn_line(path)
        stream = path.open("ab")
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error}") from None
    with stream:
        log = PredictionLog(path, stream.fileno(), keeps_prompts=keeps_prompts)
        try:
            yield log
        finally:
            log.flush()
