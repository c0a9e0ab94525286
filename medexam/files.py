"""Files that appear whole or not at all, files of their owner alone, logs whose last line may be torn, and the cache.

It knows paths and bytes; what they mean, and what a user can do where they cannot be written, is the caller's.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

from medexam.drafts import drafting
from medexam.errors import RunFolderError
from medexam.text import writable

PRIVATE = 0o600
"""Mode of a file that its owner alone may read."""
_BLOCK = 4096
"""Bytes read at once where a file's last line is searched; most lines are shorter."""

Parsed = TypeVar("Parsed")


def cache_dir() -> Path:
    """The folder of files that can be made again.

    `$MEDEXAM_CACHE`, else `medexam` in the user's cache folder: `$XDG_CACHE_HOME` or `~/.cache`.
    """
    if own := os.environ.get("MEDEXAM_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "medexam"


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone; raises `OSError`."""
    if not path.parent.exists():
        make_private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path, mode: str) -> IO[bytes]:
    """Open a file in a binary mode; where it has to be made, it is its owner's alone. Raises `OSError`."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, PRIVATE))


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """An empty file beside `path` to write, which replaces it once the block ends without an error.

    A reader sees the file of before or the whole new one, also after a power cut. Raises `OSError`.
    """
    with _drafting_file(path, private=private) as draft:
        yield draft
        _sync(draft)
        draft.replace(path)


@contextmanager
def _drafting_file(path: Path, *, private: bool) -> Iterator[Path]:
    with drafting(path) as draft:
        draft.touch(PRIVATE if private else 0o666, exist_ok=False)
        yield draft


def _sync(draft: Path) -> None:
    # Before the draft gets its name: else a power cut may leave the name with an empty file.
    with draft.open("rb") as stream:
        os.fsync(stream.fileno())


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all, text as UTF-8; raises `OSError`."""
    with whole_file(path, private=private) as draft:
        draft.write_bytes(writable(content).encode("utf-8") if isinstance(content, str) else content)


def write_new(path: Path, content: str) -> None:
    """Write a file that is not there yet, whole or not at all, as UTF-8; raises `FileExistsError` and `OSError`."""
    with _drafting_file(path, private=False) as draft:
        draft.write_bytes(writable(content).encode("utf-8"))
        _sync(draft)
        # A link never replaces a file, as a rename would: the first of two writers wins.
        os.link(draft, path)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside `path` to fill, which is renamed to it once the block ends without an error.

    Raises `OSError`, also where `path` holds something by then: the first of two writers wins.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafting(path) as draft:
        draft.mkdir()
        yield draft
        draft.rename(path)


def read_whole_lines(path: Path) -> Iterator[bytes]:
    """Each line of a log with its end; a torn last one counts as not written. None without a file."""
    if path.exists():
        with path.open("rb") as stream:
            yield from (line for line in stream if line.endswith(b"\n"))


def parse_lines(path: Path, parse: Callable[[bytes], Parsed]) -> Iterator[tuple[int, int, Parsed]]:
    """Each line's number, the byte at which it begins and what `parse` makes of it, as `read_whole_lines` reads them.

    Raises `RunFolderError` for a line that `parse` refuses by `ValueError`, `KeyError` or `TypeError`.
    """
    begins = 0
    for number, line in enumerate(read_whole_lines(path), start=1):
        try:
            parsed = parse(line)
        except (ValueError, KeyError, TypeError) as error:
            from pydantic import ValidationError  # not above: `medexam --help` imports no pydantic

            detail = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise RunFolderError(
                f"{path}, line {number} is damaged ({detail}); remove the line to ask it again"
            ) from None
        yield number, begins, parsed
        begins += len(line)


def cut_torn_line(path: Path) -> None:
    """Cut off what a dead process left behind the last whole line; only the file's end is read."""
    if not path.exists():
        return
    with path.open("rb+") as stream:
        size = end = stream.seek(0, os.SEEK_END)
        whole = 0
        # Backwards from the end: the log of a large run takes long to read.
        while end and not whole:
            begins = max(0, end - _BLOCK)
            stream.seek(begins)
            found = stream.read(end - begins).rfind(b"\n")
            whole, end = (begins + found + 1 if found >= 0 else 0), begins
        if whole < size:
            stream.truncate(whole)
