"""Files and folders that appear whole or not at all, files of their owner alone, and the cache.

It knows paths and bytes; what they mean, and what a user can do where they cannot be written, is the caller's.
"""

import hashlib
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident

from medexam.text import writable

PRIVATE = 0o600
"""Mode of a file that its owner alone may read."""
_DRAFT = ".draft"
"""How the name of a draft ends."""
_LONGEST_NAME = 120
"""Bytes of a name; most file systems take 255, and drafts and dates stand in it too."""


def cache_dir() -> Path:
    """Return the folder of files that can be made again.

    `$MEDEXAM_CACHE`, else `medexam` in the user's cache folder: `$XDG_CACHE_HOME` or `~/.cache`.
    """
    if own := os.environ.get("MEDEXAM_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "medexam"


def file_name(text: str) -> str:
    """Write a text as a name that every file system takes and every terminal shows; a long one ends in its digest."""
    name = "".join("_" if sign in '<>:"\\|?*/' or not sign.isprintable() else sign for sign in text).rstrip(". ")
    data = name.encode()
    if len(data) > _LONGEST_NAME:
        digest = hashlib.sha256(data).hexdigest()[:12]
        name = f"{data[: _LONGEST_NAME - 13].decode(errors='ignore')}-{digest}"
    return name or "unknown"


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield an empty file beside `path` to write, which replaces it once the block ends without an error.

    A reader sees the file of before or the whole new one, also after a power cut. Raises `OSError`.
    """
    with drafting(path) as draft:
        draft.touch(PRIVATE if private else 0o666, exist_ok=False)
        yield draft
        # Before the draft gets its name: else a power cut may leave the name with an empty file.
        with draft.open("rb") as stream:
            os.fsync(stream.fileno())
        draft.replace(path)


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all, text as UTF-8; raises `OSError`."""
    with whole_file(path, private=private) as draft:
        draft.write_bytes(writable(content).encode("utf-8") if isinstance(content, str) else content)


def write_new(path: Path, content: str) -> None:
    """Write a file that is not there yet, whole or not at all, as UTF-8; raises `FileExistsError` and `OSError`."""
    with drafting(path) as draft:
        draft.write_bytes(writable(content).encode("utf-8"))
        # A link never replaces a file, as a rename would: the first of two writers wins.
        os.link(draft, path)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` to fill, which is renamed to it once the block ends without an error.

    Raises `OSError`, also where `path` holds something by then: the first of two writers wins.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafting(path) as draft:
        draft.mkdir()
        yield draft
        draft.rename(path)


@contextmanager
def drafting(path: Path) -> Iterator[Path]:
    """Yield where to make what will be `path`. Nothing is there at first, and what is left there at the end is removed.

    It lies beside `path`, hidden, and is named after its writer: the machine, the process and the thread. Drafts of
    `path` whose processes were killed are removed first. Raises `OSError`.
    """
    opening = f".{path.name}.{host_name()}."
    form = re.compile(rf"{re.escape(opening)}(\d+)\.\d+{re.escape(_DRAFT)}")
    draft = path.parent / f"{opening}{os.getpid()}.{get_ident()}{_DRAFT}"
    # One look at the folder, and no sort: it may hold many files.
    with suppress(OSError), os.scandir(path.parent) as entries:
        for match in filter(None, (form.fullmatch(entry.name) for entry in entries)):
            if match[0] == draft.name or not process_lives(int(match[1])):
                _remove(path.parent / match[0])
    try:
        yield draft
    finally:
        _remove(draft)


def _remove(draft: Path) -> None:
    with suppress(OSError):
        if draft.is_dir() and not draft.is_symlink():
            shutil.rmtree(draft)
        else:
            draft.unlink(missing_ok=True)


def host_name() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


def process_lives(pid: int) -> bool:
    """Return whether the process runs on this machine; a dead one that nobody reaped does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] not in "ZX"
    return True
