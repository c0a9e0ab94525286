"""Predictions as they lie on the disk, one line each: read a line at a time, so that memory does not bound a run, and
appended in batches, each of which is there whole or not at all.

A torn last line, left by a process that was killed while writing, counts as not written; a line that is damaged
anywhere else is an error, and so is one that another run wrote. Which file it is and what the predictions are worth is
known elsewhere.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from medexam.errors import RunFolderError
from medexam.experiments.store.log_lines import cut_torn_line, parse_lines
from medexam.experiments.store.shared_turns import SharedTurns, Turns, complete, prompts_beside
from medexam.predictions import Prediction

_BLOCK = 4096
"""Bytes read at once where one line is looked up; most lines are shorter."""
HELD_BYTES = 2**23
"""Bytes of a file's first lines whose predictions `StoredPredictions` holds: 10,000 with short prompts, about 40 MB."""


def scan_predictions(path: Path, spec_digest: str) -> Iterator[tuple[int, Prediction]]:
    """Yield each line's prediction behind the byte at which the line begins, in the file's order; none without a file.

    `spec_digest` is that of the run whose lines they are. Raises `RunFolderError` where a line belongs to another, or
    one that is not a torn last one is damaged.
    """
    turns = Turns(prompts_beside(path))
    for number, start, prediction in parse_lines(path, lambda line: parse_prediction(line, turns)):
        if prediction.spec_digest != spec_digest:
            check_own(prediction, spec_digest, f"{path}, line {number}")
        yield start, prediction


def parse_prediction(line: bytes, turns: Turns) -> Prediction:
    """Read a line of a log whose shared turns are `turns`; raises `ValueError`."""
    return complete(Prediction.model_validate_json(line), turns)


def check_own(prediction: Prediction, spec_digest: str, place: str) -> None:
    """Raise `RunFolderError`, naming the `place` where it was found, for a prediction that another run made."""
    if prediction.spec_digest != spec_digest:
        raise RunFolderError(
            f"{place} belongs to another run (digest {prediction.spec_digest}, and this run's is {spec_digest}): "
            f"move it to the folder of that run, or remove it to ask {prediction.question} again"
        )


class StoredPredictions(Mapping[str, Prediction]):
    """The last prediction of each question by key. What is appended after the start is not seen.

    The first ones are held in memory; of the others only the place of the line is, and each look reads it anew.
    """

    def __init__(self, path: Path, descriptor: int, spec_digest: str, *, prompts: bool) -> None:
        """Read the predictions; `descriptor` is the file at `path`, open for as long as predictions are looked at.

        Without `prompts`, those of a file larger than `HELD_BYTES` are left out: all of its calls would not fit the
        memory. Raises `RunFolderError` where a line is damaged or not of the run with this digest.
        """
        self._descriptor = descriptor
        self._drops = not prompts and path.stat().st_size > HELD_BYTES
        self._starts: dict[str, int] = {}
        self._cache: dict[str, Prediction] = {}
        self._turns = Turns(prompts_beside(path))
        for start, prediction in scan_predictions(path, spec_digest):
            self._starts[prediction.question] = start
            if start < HELD_BYTES:
                self._cache[prediction.question] = self._dropped(prediction)
            else:
                self._cache.pop(prediction.question, None)

    def __getitem__(self, key: str) -> Prediction:
        if (prediction := self._cache.get(key)) is not None:
            return prediction
        start = self._starts[key]
        line = b""
        # `pread` moves no position that several threads would share.
        while b"\n" not in line:
            chunk = os.pread(self._descriptor, max(_BLOCK, len(line)), start + len(line))
            if not chunk:
                raise RunFolderError(f"the prediction of {key} is no longer in its file, which was changed")
            line += chunk
        return self._dropped(parse_prediction(line[: line.index(b"\n")], self._turns))

    def _dropped(self, prediction: Prediction) -> Prediction:
        if self._drops:
            for call in prediction.calls:
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

    def __init__(self, path: Path, descriptor: int, *, keeps_prompts: bool = True) -> None:
        """Take `descriptor` as the open end of the file at `path`."""
        self._path = path
        self._keeps_prompts = keeps_prompts
        self._descriptor = descriptor
        self._turns = SharedTurns(prompts_beside(path))
        self._waiting: list[bytes] = []

    def append(self, prediction: Prediction) -> None:
        """Queue one line; `flush` puts it on the disk."""
        # One write and one fsync a batch: a sync for each answer would be the slowest part of a fast run.
        self._waiting.append(self._turns.write(prediction if self._keeps_prompts else _without_prompts(prediction)))

    def flush(self) -> None:
        """Put all queued lines on the disk.

        Raises `RunFolderError` where they do not fit: none of them is there then, and all stay queued. Raises it also
        if the file was removed or moved since it was opened.
        """
        if not self._waiting:
            return
        self._check_place()
        batch = b"".join(self._waiting)
        end = os.fstat(self._descriptor).st_size
        try:
            self._flush_turns()
            while batch:
                batch = batch[os.write(self._descriptor, batch) :]
            os.fsync(self._descriptor)
        except OSError as error:
            # A part that was written is taken back: the batch stays queued, and would stand in the file twice.
            with suppress(OSError):
                os.ftruncate(self._descriptor, end)
            raise RunFolderError(
                f"cannot write {self._path}: {error.strerror}; the answers so far are kept: make room, and run the "
                "same command again"
            ) from None
        self._waiting.clear()

    def _flush_turns(self) -> None:
        """Put on the disk what the lines refer to, before these; raises `OSError`."""
        if self._turns.waiting:
            with self._turns.path.open("ab") as stream:
                end = stream.tell()
                try:
                    stream.write(b"".join(self._turns.waiting))
                    stream.flush()
                    os.fsync(stream.fileno())
                except OSError:
                    with suppress(OSError):
                        os.ftruncate(stream.fileno(), end)
                    raise
            self._turns.waiting.clear()

    def _check_place(self) -> None:
        # A file that has lost its name can still be written, but nobody reads it again.
        with suppress(OSError):
            if os.path.samestat(os.fstat(self._descriptor), self._path.stat()):
                return
        count = len(self._waiting)
        loss = "1 answer since is lost" if count == 1 else f"{count:,} answers since are lost"
        raise RunFolderError(
            f"{self._path} was removed or moved while answers were written to it, so the run stops: {loss}; put it "
            "back where it was, and run the same command again"
        )


def _without_prompts(prediction: Prediction) -> Prediction:
    calls = tuple(replace(call, messages=(), prompt=None, texts=call.texts and ()) for call in prediction.calls)
    return prediction.model_copy(update={"calls": calls})


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
