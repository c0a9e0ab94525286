"""The shards of a run: files that its processes wrote, one each, and what they hold that the run does not.

A shard appends to `parts/PART.jsonl` in the run's folder, the same lines as those of `predictions.jsonl`. The process
that holds the folder's lock merges them; a driver that was killed leaves them to the next run. This module knows files
and predictions, not processes.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from medexam.errors import RunBusyError, RunFolderError
from medexam.experiments.store.prediction_lines import scan_predictions
from medexam.predictions import Prediction, Status

SHARDS = "parts"
"""The folder of the shards, in that of the run; it is there only while a run is distributed or was cut off."""
_SUFFIX = ".jsonl"
_LOCK = ".lock"
_LAST_WRITE_S = 7.0
"""Seconds that a process gets to end whose driver was killed."""


def shard_path(folder: Path, part: int) -> Path:
    """Return where the answers to a part of the run in `folder` are written."""
    return folder / SHARDS / f"{part}{_SUFFIX}"


@contextmanager
def hold_shard(folder: Path, part: int) -> Iterator[Path]:
    """Hold a part of the run in `folder` for this process, and yield where its answers are written.

    Raises `RunBusyError` where another process holds it, and `RunFolderError` where it cannot be written.
    """
    path = shard_path(folder, part)
    try:
        path.parent.mkdir(exist_ok=True)
        lock = FileLock(path.with_suffix(_LOCK), mode=folder.stat().st_mode & 0o666)
        lock.acquire(timeout=_LAST_WRITE_S)
    except Timeout:
        raise RunBusyError(f"part {part} of run {folder.name} is being asked by another process; wait for it") from None
    except OSError as error:
        raise RunFolderError(f"cannot write {path.parent}: {error.strerror}; make it writable") from None
    with lock:
        yield path


def check_at_rest(folder: Path) -> None:
    """Raise `RunBusyError` as long as a process writes a shard of the run in `folder`."""
    for path in (folder / SHARDS).glob(f"*{_LOCK}"):
        try:
            with FileLock(path, timeout=_LAST_WRITE_S):
                pass
        except Timeout:
            raise RunBusyError(
                f"part {path.stem} of run {folder.name} is being asked by another process; wait for its end"
            ) from None


def has_shards(folder: Path) -> bool:
    """Return whether something lies in shards of the run in `folder`."""
    return any(path.exists() and path.stat().st_size for path in (folder / SHARDS).glob(f"*{_SUFFIX}"))


def scan_shards(folder: Path, spec_digest: str) -> Iterator[Prediction]:
    """Yield every prediction of the shards of the run with this digest, shard by shard.

    Raises `RunFolderError` where a line is damaged or belongs to another run.
    """
    for path in sorted((folder / SHARDS).glob(f"*{_SUFFIX}")):
        for _, prediction in scan_predictions(path, spec_digest):
            yield prediction


def find_unmerged(shards: Iterable[Prediction], merged: Iterable[Prediction]) -> dict[str, Prediction]:
    """Find what the shards hold and the lines that are `merged` do not, by question.

    A question that is answered in `merged` is left out, so that a merge that was cut off is repeated without harm. A
    failure counts only if no answer is known.
    """
    # Answers are not kept: a run may be larger than the memory.
    failure_by_question = {line.question: line if line.status is Status.FAILED else None for line in merged}
    new: dict[str, Prediction] = {}
    for prediction in shards:
        key = prediction.question
        is_open = (
            new[key].status is Status.FAILED if key in new else failure_by_question.get(key, prediction) is not None
        )
        if is_open and prediction != failure_by_question.get(key):
            new[key] = prediction
    return new


def remove_shards(folder: Path) -> None:
    """Remove the shards once they are merged; raises `RunFolderError` where that is not possible."""
    shards = folder / SHARDS
    if not shards.is_dir():
        return
    try:
        for path in shards.iterdir():
            path.unlink(missing_ok=True)
    except OSError as error:
        raise RunFolderError(f"cannot remove {shards}, which is merged: {error.strerror}; remove it by hand") from None
    # A worker that outlived its driver by a moment may write once more; the next merge finds that.
    with suppress(OSError):
        shards.rmdir()
