"""Passages in tables of text: DPR's TSV with its header, MS MARCO's without one, and CSV."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from medexam.inputs import LONGEST_TEXT, UnreadableError, open_unpacked
from medexam.retrievers.formats.names import IDS, find_field, find_text

SUFFIXES = (".tsv", ".tsv.gz", ".csv", ".csv.gz")
_DELIMITERS = "\t,;|"
_BARE = ("id", "text", "title")
"""The columns of a TSV without a header, as in DPR and MS MARCO."""


def read_table(path: Path) -> Iterator[tuple[int, Mapping[str, str] | str]]:
    """Yield the rows of a table, each with its line; a text says why a row is none.

    Raises `OSError`, and `UnreadableError` if the header names no passages, or the file is damaged.
    """
    limit = csv.field_size_limit(LONGEST_TEXT)
    try:
        with open_unpacked(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as lines:
            first = lines.readline(LONGEST_TEXT)
            delimiter, columns, has_header = _read_header(first)
            # MS MARCO's texts hold single quotation marks; tables with a header are written by libraries.
            rows = csv.reader(
                lines,
                delimiter=delimiter,
                quoting=csv.QUOTE_MINIMAL if has_header else csv.QUOTE_NONE,
                strict=True,
            )
            last_line = 1
            if not has_header:
                yield 1, dict(zip(columns, first.rstrip("\r\n").split(delimiter), strict=True))
            for row in rows:
                line, last_line = last_line + 1, rows.line_num + 1
                if row:
                    yield line, _name(row, columns)
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8 (byte {error.object[error.start]:#04x})") from None
    except csv.Error as error:
        raise UnreadableError(f"is no table ({error})") from None
    finally:
        csv.field_size_limit(limit)


def _name(row: Sequence[str], columns: Sequence[str]) -> Mapping[str, str] | str:
    if len(row) != len(columns):
        return f"has {len(row)} cells, and the columns are {', '.join(columns)}"
    return dict(zip(columns, row, strict=True))


def _read_header(line: str) -> tuple[str, Sequence[str], bool]:
    """Read the delimiter, the columns, and whether the first line names them."""
    for delimiter in _DELIMITERS:
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
        if len(cells) > 1 and find_field(cells, IDS) is not None and find_text(cells) is not None:
            return delimiter, cells, True
    bare = line.rstrip("\r\n").split("\t")
    if 2 <= len(bare) <= len(_BARE) and bare[0].isdecimal():
        return "\t", _BARE[: len(bare)], False
    raise UnreadableError(f"begins with {line.strip()!r:.100}, which names no columns of passages")
