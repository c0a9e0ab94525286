"""Files that others wrote: their bytes, JSON and Parquet rows, or one line on what is wrong.

It knows formats and no meaning; which error a user sees, and the way out, is the caller's.
"""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from pydantic_core import from_json

from medexam.text import writable

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

LONGEST_TEXT = 1 << 24
"""Characters of one cell of a table; a picture as text fits in."""
_BATCH_ROWS = 1024
_OF_DAMAGE = (OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)


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
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            yield from batch.to_pylist()


@contextmanager
def _naming_damage() -> Iterator[None]:
    """Turn what pyarrow raises of a damaged file into an `UnreadableError`."""
    import pyarrow as pa

    try:
        yield
    except (*_OF_DAMAGE, pa.ArrowException) as error:
        raise UnreadableError(f"is not a complete Parquet file ({first_line(error)})") from None


def first_line(error: Exception) -> str:
    """Return what a library's error says, in one line and without what is of no use to a user."""
    return " ".join(str(error).split(";")[0].split())[:200] or type(error).__name__
