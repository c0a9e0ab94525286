"""Logs to which lines are appended, whose last line may be torn: a process was killed while it wrote it.

What a line holds is known elsewhere.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from medexam.errors import RunFolderError
from medexam.inputs import UnreadableError, check_regular

_BLOCK = 4096
"""Bytes read at once where a file's last line is searched; most lines are shorter."""

LONGEST_LINE = 1 << 27
"""Bytes of a line; twice what a server's reply may have."""

Parsed = TypeVar("Parsed")


def read_whole_lines(path: Path) -> Iterator[bytes]:
    """Yield each line of a log with its end; a torn last one counts as not written. Yield none without a file.

    Raises `RunFolderError` where something else than a file lies there, or a line is longer than `LONGEST_LINE`.
    """
    if not path.exists():
        return
    check_file(path)
    with path.open("rb") as stream:
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE), b""), start=1):
            if line.endswith(b"\n"):
                yield line
            elif len(line) == LONGEST_LINE:
                raise RunFolderError(f"{path}, line {number} {_TOO_LONG}")


def parse_lines(
    path: Path, parse: Callable[[bytes], Parsed], ways_out: str = "remove the line to ask it again"
) -> Iterator[tuple[int, int, Parsed]]:
    """Yield each line's number, the byte at which it begins and what `parse` makes of it, as `read_whole_lines` reads
    them.

    Raises `RunFolderError`, which ends with `ways_out`, for a line that `parse` refuses by `ValueError`, `KeyError` or
    `TypeError`.
    """
    start = 0
    for number, line in enumerate(read_whole_lines(path), start=1):
        try:
            parsed = parse(line)
        except (ValueError, KeyError, TypeError) as error:
            from pydantic import ValidationError  # not above: `medexam --help` imports no pydantic

            detail = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise RunFolderError(f"{path}, line {number} is damaged ({detail}); {ways_out}") from None
        yield number, start, parsed
        start += len(line)


def cut_torn_line(path: Path) -> None:
    """Cut off what a dead process left behind the last whole line; only the file's end is read.

    Raises `OSError`, and `RunFolderError` where something else than a file lies there, or that line would be longer
    than `LONGEST_LINE`.
    """
    if not path.exists():
        return
    check_file(path)
    with path.open("rb+") as stream:
        size = end = stream.seek(0, os.SEEK_END)
        complete_size = 0
        # Backwards from the end: the log of a large run takes long to read.
        while end and not complete_size:
            start = max(0, end - _BLOCK)
            stream.seek(start)
            if size - start > LONGEST_LINE:
                raise RunFolderError(f"{path}, the last line {_TOO_LONG}")
            newline = stream.read(end - start).rfind(b"\n")
            complete_size, end = (start + newline + 1 if newline >= 0 else 0), start
        if complete_size < size:
            stream.truncate(complete_size)


_TOO_LONG = f"is longer than {LONGEST_LINE:,} bytes, the most that medexam writes: remove it to ask its question again"


def check_file(path: Path) -> None:
    """Raise `RunFolderError` where something else than a file lies at `path`, and `OSError` where nothing does."""
    try:
        check_regular(path)
    except UnreadableError as error:
        raise RunFolderError(f"{path} {error}") from None
