"""Files that others wrote: their bytes, JSON and Parquet rows up to a size and a depth, or one line on what is wrong.

What a packed file may unpack to is bounded, since ten megabytes of gzip can stand for ten gigabytes. It knows formats
and no meaning; which error a user sees, and the way out, is the caller's.
"""

import bz2
import csv
import errno
import gzip
import io
import json
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic_core import from_json

from medexam.text import writable

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MOST_LEVELS = 100
"""How deep the lists and objects of a JSON text may lie in each other."""
UNPACKED_FREELY = 1 << 28
"""Bytes that any packed file may unpack to."""
MOST_TIMES = 50
"""How many times its own size a packed file may unpack to beyond that; texts of exams and corpora come to 3 to 15."""
LARGEST_RECORD = 1 << 28
"""Bytes of a JSON file of a run; the keys of a million questions come to a tenth of it."""
LONGEST_TEXT = 1 << 24
"""Characters of one cell, or of one line of JSON Lines, in a file of others; a picture as text fits in."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_SHOWN = 200
"""Characters of a library's message that are repeated."""
_BATCH_ROWS = 1024
_OF_DAMAGE = (OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
_MAGIC: tuple[tuple[bytes, Callable[[IO[bytes]], Any]], ...] = (
    (b"\x1f\x8b", lambda stream: gzip.GzipFile(fileobj=stream)),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
    (b"BZh", bz2.BZ2File),
)


class UnreadableError(ValueError):
    """A file is damaged, too large or too deep; the message continues its name, such as `is not JSON (...)`."""


class _Unpacked(io.RawIOBase):
    """What a packed stream unpacks to; raises `UnreadableError` where it is damaged, or beyond `most` bytes."""

    def __init__(self, packed: Any, most: int) -> None:
        self._packed, self._most, self._read = packed, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count: int = self._packed.readinto(buffer)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise UnreadableError(f"is not a complete archive: {first_line(error)}") from None
        self._read += count
        if self._read > self._most:
            raise UnreadableError(_too_large(self._most))
        return count

    def close(self) -> None:
        self._packed.close()
        super().close()


@contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file's bytes; unpacked if it ends in `.gz`, or begins as files of gzip, xz or bzip2 do.

    Raises `OSError`, and `UnreadableError` where it is no regular file; reading raises the latter where the file is
    damaged or unpacks to more than a packed file may.
    """
    check_regular(path)
    with path.open("rb") as stream:
        head = stream.read(len(_MAGIC[1][0]))
        stream.seek(0)
        unpack = next((unpack for magic, unpack in _MAGIC if head.startswith(magic)), None)
        if path.suffix == ".gz":
            unpack = _MAGIC[0][1]
        if unpack is None:
            yield stream
            return
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        with io.BufferedReader(_Unpacked(unpack(stream), _most_unpacked(size)), 1 << 16) as unpacked:
            yield unpacked


def check_regular(path: Path) -> None:
    """Raise `UnreadableError` for what lies at a path and is no file, such as a pipe, which may never end.

    Raises `OSError` where nothing lies there.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise UnreadableError(f"is {kinds.get(stat.S_IFMT(mode), 'a device')} and not a file: move it away")


def open_regular(path: Path) -> BufferedReader:
    """Open a file that a user names for reading; raise `OSError`, also for what `check_regular` refuses."""
    try:
        check_regular(path)
    except UnreadableError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    return path.open("rb")


def read_regular(path: Path) -> bytes:
    """Read the bytes of a file that a user names; raise `OSError` as `open_regular` does."""
    with open_regular(path) as stream:
        return stream.read()


def check_length(text: str | bytes, description: str) -> None:
    """Raise `UnreadableError` for a text that is longer than `LONGEST_TEXT`; `description` begins the message."""
    if len(text) > LONGEST_TEXT:
        raise UnreadableError(f"{description} is longer than {LONGEST_TEXT:,} characters")


@contextmanager
def long_cells() -> Iterator[None]:
    """Have the module `csv` read cells of up to `LONGEST_TEXT` characters within the block."""
    limit = csv.field_size_limit(LONGEST_TEXT)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def is_there(path: Path) -> bool:
    """Return whether something lies at a path, which others named and no file system may take."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def read_bytes(path: Path) -> bytes:
    """Read all bytes of a file, unpacked; raise `OSError` and `UnreadableError` as `open_unpacked` does."""
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
    # Imported here: `medexam --help` imports no pydantic.
    try:
        return from_json(text)
    except ValueError:
        # It takes less than `json.loads`: no half of a surrogate pair, and no lists 200 deep.
        return json.loads(text)


def parse_json(text: str | bytes) -> Any:
    """Parse the value of a JSON text, with each half of a surrogate pair as its escape.

    Raises `UnreadableError` if it is none, holds a number of thousands of digits, or lies more than `MOST_LEVELS` deep.
    """
    # What is decoded, or ASCII, holds halves as escapes alone, and to look for these takes a tenth of the time.
    decoded = isinstance(text, bytes) or text.isascii()
    text = decode(text) if isinstance(text, bytes) else text
    try:
        value = load_json(text)
    except RecursionError:
        raise UnreadableError(_TOO_DEEP) from None
    except ValueError as error:
        raise UnreadableError(f"is not JSON ({first_line(error)})") from None
    if text.count("[") + text.count("{") > MOST_LEVELS:
        _check_depth(value)
    may_hold_halves = not decoded or ("\\u" in text and ("\\ud" in text or "\\uD" in text))
    return writable(value) if may_hold_halves and _SURROGATE.search(text) else value


def read_json(path: Path) -> Any:
    """Read the value of a JSON file, packed or not; raise `OSError`, and `UnreadableError` as `parse_json` does."""
    return parse_json(read_bytes(path))


def read_record(path: Path) -> Any:
    """Read the value of a JSON file that this package writes. Raise as `read_json` does, also beyond
    `LARGEST_RECORD`.
    """
    check_regular(path)
    if path.stat().st_size > LARGEST_RECORD:
        raise UnreadableError(f"is larger than {LARGEST_RECORD >> 20} MiB, the most that medexam writes: restore it")
    return read_json(path)


@contextmanager
def open_parquet(path: Path) -> "Iterator[ParquetFile]":
    """Open a Parquet file; raise `UnreadableError` where it is damaged, then or while `parquet_rows` reads it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _naming_damage():
        check_regular(path)
        file = pq.ParquetFile(path)
    with file:
        yield file
    pa.default_memory_pool().release_unused()


def parquet_rows(file: "ParquetFile", columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, a batch in memory at a time.

    Raises `UnreadableError` where it is damaged, or holds more than a packed file may: rows that repeat one long text
    take no place on the disk.
    """
    with _naming_damage():
        parts = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
        sizes = [part.column(index).total_uncompressed_size for part in parts for index in range(part.num_columns)]
        packed_bytes = sum(
            part.column(index).total_compressed_size for part in parts for index in range(part.num_columns)
        )
    most_bytes, byte_count = _most_unpacked(packed_bytes), 0
    # A value is no longer than its column's part, so a batch of this many rows fits in `most` bytes.
    rows = max(1, min(_BATCH_ROWS, most_bytes // max(1, *sizes, 1)))
    batches = file.iter_batches(rows, columns=columns)
    while True:
        with _naming_damage():
            batch = next(batches, None)
            if batch is None:
                return
            batch = _written_out(batch)
            byte_count += batch.nbytes
            records: list[dict[str, Any]] = batch.to_pylist() if byte_count <= most_bytes else []
        if byte_count > most_bytes:
            raise UnreadableError(_too_large(most_bytes))
        yield from records


def check_archive(path: Path) -> None:
    """Raise `UnreadableError` if a zip file is damaged or holds more than a packed file may; and `OSError`."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise UnreadableError(f"is not a complete archive: {first_line(error)}") from None
    if size > (most := _most_unpacked(path.stat().st_size)):
        raise UnreadableError(_too_large(most))


def first_line(error: Exception) -> str:
    """Return what a library's error says, in one line and without what is of no use to a user."""
    return " ".join(str(error).split(";")[0].split())[:_SHOWN] or type(error).__name__


_TOO_DEEP = f"holds lists and objects nested more than {MOST_LEVELS} levels deep"


def _written_out(batch: Any) -> Any:
    """Write out the rows with each value in its place, also of columns that name the values of a list."""
    import pyarrow as pa

    columns = [
        column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _most_unpacked(size: int) -> int:
    return max(UNPACKED_FREELY, MOST_TIMES * size)


def _too_large(most: int) -> str:
    return (
        f"unpacks to more than {most >> 20:,} MiB; the limit is {UNPACKED_FREELY >> 20} MiB or {MOST_TIMES} times "
        "the file's size"
    )


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        within = [child for child in level if type(child) in (list, dict)]
        if not within:
            return
        level = [inner for parent in within for inner in (parent.values() if isinstance(parent, dict) else parent)]  # type: ignore[attr-defined]
    raise UnreadableError(_TOO_DEEP)


@contextmanager
def _naming_damage() -> Iterator[None]:
    """Turn what pyarrow raises of a damaged file into an `UnreadableError`."""
    import pyarrow as pa

    try:
        yield
    except (*_OF_DAMAGE, pa.ArrowException) as error:
        raise UnreadableError(f"is not a complete Parquet file ({first_line(error)})") from None
