"""What a model folder, a file or a hub model is: an identity by content, never by name, path or time.

Files are read whole once. Their hashes are remembered in the cache by path, inode, size and both times, so that a
folder of many gigabytes is identified at once from then on.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from medexam.errors import CommitUnknownError, EngineError
from medexam.files import cache_dir, write_whole

_MOST_REMEMBERED = 4096
"""Files in the memory; the longest known go first."""
_SETTLED_S = 2.0
"""Seconds within which a second change may leave a file's times as they are, on the coarsest file systems."""
_DOCUMENTS = frozenset({".md", ".rst", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"})
_NOTICES = frozenset({"readme", "license", "licence", "notice", "copying"})
_COMMIT = re.compile(r"[0-9a-f]{40}")


def fingerprint_folder(folder: Path) -> str:
    """Compute `sha256:` and 16 hexadecimal digits over every file of a model folder, by its place in the folder and
    content.

    Left out are hidden files, and the documents that models come with (README, licence, pictures), which cannot change
    an answer. Raises `EngineError` where a file cannot be read.
    """
    try:
        files = sorted((file.relative_to(folder).as_posix(), file) for file in _model_files(folder))
        hashes = hash_files([file for _, file in files])
    except OSError as error:
        raise EngineError(
            f"{error.filename or folder}: it cannot be read, so it is unknown which model {folder} holds: "
            f"{error.strerror or error}; make it readable, or name another copy"
        ) from error
    lines = (f"{place}:{sha256}\n" for (place, _), sha256 in zip(files, hashes, strict=True))
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()[:16]}"


def hash_files(files: Sequence[Path]) -> list[str]:
    """Hash each file with SHA-256, in hexadecimal, in the order of `files`; raises `OSError`."""
    memory, hashes = _read_memory(), list[str]()
    size = len(memory)
    for file in files:
        stat = file.stat()
        stamp = f"{file.resolve()} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
        if stamp not in memory:
            with file.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            if max(stat.st_mtime, stat.st_ctime) > time.time() - _SETTLED_S:
                hashes.append(sha256)
                continue
            memory[stamp] = sha256
        hashes.append(memory[stamp])
    if len(memory) > size:
        with suppress(OSError):
            cache_dir().mkdir(parents=True, exist_ok=True)
            entries = dict(list((_read_memory() | memory).items())[-_MOST_REMEMBERED:])
            write_whole(cache_dir() / "hashes.json", json.dumps(entries), private=True)
    return hashes


def resolve_commit(hub_id: str, revision: str | None = None) -> str:
    """Resolve a branch or tag of a hub model to its commit, 40 hexadecimal digits; None is its `main`.

    The hub is asked; where it is out of reach, or `HF_HUB_OFFLINE=1` forbids it, the hub's cache on this machine says
    what was downloaded last. A commit stands for itself. Raises `CommitUnknownError` where neither tells.
    """
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    from huggingface_hub import HfApi, constants

    try:
        return str(HfApi().model_info(hub_id, revision=revision, expand=["sha"], timeout=10).sha)
    except Exception as error:  # the hub's own errors, httpx's and the system's alike leave the cache to be asked
        for cache in filter(None, (constants.HF_HUB_CACHE, os.environ.get("SENTENCE_TRANSFORMERS_HOME"))):
            own = Path(cache) / f"models--{hub_id.replace('/', '--')}"
            with suppress(OSError, ValueError):
                commit = (own / "refs" / (revision or "main")).read_text(encoding="utf-8").strip()
                if _COMMIT.fullmatch(commit) and (own / "snapshots" / commit).is_dir():
                    return commit
        raise CommitUnknownError(
            f"{hub_id}: the commit of {revision or 'main'} is unknown ({' '.join(str(error).split())[:200]}), and "
            f"{constants.HF_HUB_CACHE} holds none: connect to the hub (a private model needs HF_TOKEN), correct the "
            "name, name its commit of 40 digits as the revision, or name a folder with a copy"
        ) from error


def _model_files(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield the files that count, through links to folders as well, but no folder within itself."""
    if (own := folder.resolve()) in above:
        return
    for entry in folder.iterdir():
        suffix = entry.suffix.lower()
        is_document = suffix in _DOCUMENTS or (suffix in ("", ".txt") and entry.stem.lower() in _NOTICES)
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _model_files(entry, above | {own})
        elif entry.is_file() and not is_document:
            yield entry


def _read_memory() -> dict[str, str]:
    try:
        memory = json.loads((cache_dir() / "hashes.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return memory if isinstance(memory, dict) else {}
