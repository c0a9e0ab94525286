"""Files that appear whole or not at all, the cache, and files that others wrote: bytes, JSON and Parquet rows, or one
line on what is wrong.

It knows paths and formats; what they mean, and which way out a user has, is the caller's.
"""

import csv
import gzip
import hashlib
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname
from threading import get_ident
from typing import IO, TYPE_CHECKING, Any, cast

from pydantic_core import from_json

from medexam.text import writable

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_DRAFT = ".draft"
"""How the name of a draft ends."""
_LONGEST_NAME = 120
"""Bytes of a name; most file systems take 255, and drafts and dates stand in it too."""
LONGEST_TEXT = 1 << 24
"""Characters of one cell of a table; a picture as text fits in."""


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
        draft.touch(0o600 if private else 0o666, exist_ok=False)
        yield draft
        # Before the draft gets its name: else a power cut may leave the name with an empty file.
        with draft.open("rb") as stream:
            os.fsync(stream.fileno())
        draft.replace(path)


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all, text as UTF-8; raises `OSError`."""
    with whole_file(path, private=private) as draft:
        draft.write_bytes(writable(content).encode("utf-8") if isinstance(content, str) else content)


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
    opening = f".{path.name}.{gethostname()}."
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


def process_lives(pid: int) -> bool:
    """Return whether the process runs on this machine; a dead one that nobody reaped does not count."""
    import psutil

    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


class UnreadableError(ValueError):
    """A file is damaged; the message continues its name, such as `is not JSON (...)`."""


@contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file's bytes, unpacked if gzip packed them; raise `OSError`, and `UnreadableError` where it is damaged."""
    with path.open("rb") as stream:
        is_packed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        try:
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if is_packed else stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UnreadableError(f"is not a complete archive: {first_line(error)}") from None


@contextmanager
def long_cells() -> Iterator[None]:
    """Have the module `csv` read cells of up to `LONGEST_TEXT` characters within the block."""
    limit = csv.field_size_limit(LONGEST_TEXT)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def read_bytes(path: Path) -> bytes:
    """Read all bytes of a file, unpacked; raise as `open_unpacked` does."""
    with open_unpacked(path) as stream:
        return stream.read()


def decode(content: bytes) -> str:
    """Decode text in UTF-8, or in UTF-16 with its mark; raise `UnreadableError` with the byte that is neither."""
    try:
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte {error.start:,} is {content[error.start]:#04x}" if error.start < len(content) else error.reason
        raise UnreadableError(f"is not UTF-8 ({place})") from None


def load_json(text: str | bytes) -> Any:
    """Load the value that `json.loads` gives, in half the time; raise `ValueError` and `RecursionError` as it does."""
    try:
        return from_json(text)
    except ValueError:
        # It takes less than `json.loads`: no half of a surrogate pair, and no lists 200 deep.
        return json.loads(text)


def parse_json(text: str | bytes) -> Any:
    """Parse the value of a JSON text, with each half of a surrogate pair as its escape; raise `UnreadableError`."""
    text = decode(text) if isinstance(text, bytes) else text
    try:
        value = load_json(text)
        return writable(value) if "\\u" in text else value
    except RecursionError:
        raise UnreadableError("holds lists and objects nested too deep") from None
    except ValueError as error:
        raise UnreadableError(f"is not JSON ({first_line(error)})") from None


def read_json(path: Path) -> Any:
    """Read the value of a JSON file, packed or not; raise `OSError`, and `UnreadableError` as `parse_json` does."""
    return parse_json(read_bytes(path))


@contextmanager
def open_parquet(path: Path) -> "Iterator[ParquetFile]":
    """Open a Parquet file; raise `UnreadableError` where it is damaged, then or while `parquet_rows` reads it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _naming_damage():
        file = pq.ParquetFile(path)
    with file:
        yield file
    pa.default_memory_pool().release_unused()


def parquet_rows(file: "ParquetFile", columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, a batch in memory at a time."""
    with _naming_damage():
        # Arrow's threads would each hold memory of their own, 55 MB together.
        for batch in file.iter_batches(1024, columns=columns, use_threads=False):
            yield from batch.to_pylist()


@contextmanager
def _naming_damage() -> Iterator[None]:
    """Turn what pyarrow raises of a damaged file into an `UnreadableError`."""
    import pyarrow as pa

    unreadable = OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError
    try:
        yield
    except (*unreadable, pa.ArrowException) as error:
        raise UnreadableError(f"is not a complete Parquet file ({first_line(error)})") from None


def first_line(error: Exception) -> str:
    """Return what a library's error says, in one line and without what is of no use to a user."""
    return " ".join(str(error).split(";")[0].split())[:200] or type(error).__name__
