"""What a model folder, a file or a hub model is: an identity by content, never by name, path or time.

Files are read whole once. Their hashes are remembered in the cache by resolved path, device, inode, size and both
times, so that a folder of many gigabytes is identified at once from then on. Memory only saves time: where it is lost,
damaged or of a file that another mount shows otherwise, the file is read again and its hash is the same.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from medexam.errors import CommitUnknownError, EngineError
from medexam.files import cache_dir, write_whole

HashingProgress = Callable[[Path, int, int], None]
"""Called with what is read, the bytes read so far and the bytes to be read; at the end with both equal."""

MEMORY = "hashes.json"
_MOST_REMEMBERED = 4096
"""Files in the memory; the longest known go first."""
_SETTLED_S = 2.0
"""Seconds within which a second change may leave a file's times as they are, on the coarsest file systems."""
_PATIENCE_S = 1.0
"""Seconds of reading before progress is told, and a multiple of those between two tellings."""
_BLOCK_BYTES = 1 << 18
_DOCUMENTS = frozenset({".md", ".rst", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"})
_NOTICES = frozenset({"readme", "license", "licence", "notice", "copying"})
_COMMIT = re.compile(r"[0-9a-f]{40}")

_watching: ContextVar[HashingProgress | None] = ContextVar("watching", default=None)
_Memory = dict[str, list[object]]
"""Resolved path -> what `_stamp` gives and, last, the SHA-256."""


def fingerprint_folder(folder: Path) -> str:
    """Compute `sha256:` and 16 hexadecimal digits over every file of a model folder, by its place in the folder and
    content.

    Weights, configurations, tokenizers and templates count. Left out are hidden files, and the documents that models
    come with (README, licence, pictures), which cannot change an answer. Where the folder lies, its name and its
    files' times do not count. Raises `EngineError` where a file cannot be read.
    """
    try:
        files = sorted((file.relative_to(folder).as_posix(), file) for file in _model_files(folder))
        hashes = hash_files([file for _, file in files], folder)
    except OSError as error:
        raise EngineError(
            f"{error.filename or folder}: it cannot be read, so it is unknown which model {folder} holds: "
            f"{error.strerror or error}; make it readable, or name another copy"
        ) from error
    lines = (f"{place}:{sha256}\n" for (place, _), sha256 in zip(files, hashes, strict=True))
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()[:16]}"


def hash_files(files: Sequence[Path], source: Path) -> list[str]:
    """Hash each file with SHA-256, in hexadecimal, in the order of `files`; `source` names them all in the progress.

    A file that changed within the last two seconds is read again the next time. Raises `OSError`.
    """
    memory, new_entries = _read_memory(), _Memory()
    places = [file.resolve(strict=True) for file in files]
    stats = [place.stat() for place in places]
    memory_hashes = [_recall(memory, place, stat) for place, stat in zip(places, stats, strict=True)]
    total = sum(stat.st_size for stat, sha256 in zip(stats, memory_hashes, strict=True) if sha256 is None)
    progress = _Telling(source, total)
    hashes = []
    try:
        for place, sha256 in zip(places, memory_hashes, strict=True):
            if sha256 is None:
                sha256, stamp = _hash(place, progress)
                if stamp is not None:
                    new_entries[str(place)] = [*stamp, sha256]
            hashes.append(sha256)
        progress.end()
    finally:
        if new_entries:
            _remember(new_entries)
    return hashes


@contextmanager
def watch_hashing(progress: HashingProgress) -> Iterator[None]:
    """Have `progress` called while files are read for longer than about a second, in this thread."""
    before = _watching.set(progress)
    try:
        yield
    finally:
        _watching.reset(before)


def resolve_commit(hub_id: str, revision: str | None = None) -> str:
    """Resolve a branch or tag of a hub model to its commit, 40 hexadecimal digits; None is its `main`.

    The hub is asked; where it is out of reach, or `HF_HUB_OFFLINE=1` forbids it, the hub's cache on this machine says
    what was downloaded last. A commit stands for itself and nothing is asked. Raises `CommitUnknownError` where
    neither tells.
    """
    if is_commit(revision):
        return str(revision)
    from huggingface_hub import HfApi, constants

    try:
        commit = HfApi().model_info(hub_id, revision=revision, expand=["sha"], timeout=10).sha
    except Exception as error:  # the hub's own errors, httpx's and the system's alike leave the cache to be asked
        caches = [constants.HF_HUB_CACHE, os.environ.get("SENTENCE_TRANSFORMERS_HOME")]
        cached = (_cached_commit(Path(cache), hub_id, revision or "main") for cache in caches if cache)
        commit, reason = next(filter(None, cached), None), error
    else:
        reason = ValueError("the hub names no commit")
    if is_commit(commit):
        return str(commit)
    message = (" ".join(str(reason).split()) or type(reason).__name__)[:200]
    raise CommitUnknownError(
        f"{hub_id}: the commit of {revision or 'main'} is unknown ({message}), and {constants.HF_HUB_CACHE} holds "
        "none: connect to the hub (a private model needs HF_TOKEN), correct the name, download it there first, name "
        "its commit of 40 digits as the revision, or name a folder with a copy"
    ) from reason


def is_commit(revision: str | None) -> bool:
    """Return whether a revision is a commit and not a branch or tag."""
    return revision is not None and _COMMIT.fullmatch(revision) is not None


class _Telling:
    """Reports how far reading is, once it takes long."""

    def __init__(self, source: Path, total: int) -> None:
        self._source = source
        self._total = total
        self._done = 0
        self._next = time.monotonic() + _PATIENCE_S
        self._began = False
        self._progress = _watching.get()

    def add(self, count: int) -> None:
        """Report that `count` more bytes are read."""
        self._done += count
        if self._progress is not None and (now := time.monotonic()) >= self._next:
            self._next = now + _PATIENCE_S
            self._began = True
            self._progress(self._source, self._done, self._total)

    def end(self) -> None:
        """Report that everything is read."""
        if self._progress is not None and self._began:
            self._progress(self._source, self._total, self._total)


def _model_files(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield the files that count, through links to folders as well, but no folder within itself."""
    own = folder.resolve()
    if own in above:
        return
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _model_files(entry, above | {own})
        elif entry.is_file() and not _is_document(entry):
            yield entry


def _is_document(file: Path) -> bool:
    suffix = file.suffix.lower()
    return suffix in _DOCUMENTS or (suffix in ("", ".txt") and file.stem.lower() in _NOTICES)


def _hash(place: Path, progress: _Telling) -> tuple[str, tuple[int, ...] | None]:
    """Compute the SHA-256 of a file, and its stamp; None where it changed so lately that the stamp does not hold it."""
    digest, buffer = hashlib.sha256(), memoryview(bytearray(_BLOCK_BYTES))
    began = time.time()
    with place.open("rb", buffering=0) as stream:
        before = os.fstat(stream.fileno())
        while count := stream.readinto(buffer):
            digest.update(buffer[:count])
            progress.add(count)
        after = os.fstat(stream.fileno())
    settled = all(abs(began - changed) > _SETTLED_S for changed in (before.st_mtime, before.st_ctime))
    stamp = _stamp(before)
    return digest.hexdigest(), stamp if settled and stamp == _stamp(after) else None


def _stamp(stat: os.stat_result) -> tuple[int, ...]:
    """Return what changes with a file's content; its inode's time too, for a copy may keep the other time."""
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _recall(memory: _Memory, place: Path, stat: os.stat_result) -> str | None:
    match memory.get(str(place)):
        case [*stamp, str() as sha256] if tuple(stamp) == _stamp(stat):
            return sha256
    return None


def _read_memory() -> _Memory:
    try:
        memory = json.loads((cache_dir() / MEMORY).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return memory if isinstance(memory, dict) else {}


def _remember(new_entries: _Memory) -> None:
    """Write the memory whole, readable to its owner alone; where two write at once, one of them reads again later."""
    memory = _read_memory()
    entries = {place: entry for place, entry in memory.items() if place not in new_entries} | new_entries
    folder = cache_dir()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / MEMORY, json.dumps(dict(list(entries.items())[-_MOST_REMEMBERED:])), private=True)


def _cached_commit(cache: Path, hub_id: str, revision: str) -> str | None:
    """Find the commit that the hub's cache last knew a branch or tag at, if its snapshot is there."""
    own = cache / f"models--{hub_id.replace('/', '--')}"
    try:
        commit = (own / "refs" / revision).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return commit if is_commit(commit) and (own / "snapshots" / commit).is_dir() else None
