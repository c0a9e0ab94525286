"""Reads a file of any common format into the cells of its rows: one function a format, chosen by the file's ending.

What is wrong with the whole file is an `UnreadableError` that says what to do; what is wrong with a row stands in its
place.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from medexam.datasets.own.json_shapes import Cells, as_row, rows_of_document
from medexam.datasets.own.texts import check_text_length
from medexam.inputs import (
    LONGEST_TEXT,
    UnreadableError,
    check_archive,
    check_line_lengths,
    decode,
    first_line,
    open_parquet,
    parquet_rows,
    parse_json,
    read_bytes,
)

_DELIMITERS = (",", ";", "\t", "|")
_LOOKED_AT = 20
"""Rows that tell the delimiter of a CSV file."""


@dataclass(frozen=True, slots=True)
class RawTable:
    """The rows of a file before their texts are looked at."""

    format: str
    """Such as `CSV, delimiter ";"`."""
    columns: tuple[str, ...]
    """In the order of the file; empty if the format names none apart from its rows."""
    rows: Iterable[tuple[str, Cells]]
    """Each row as messages call it, with its cells. To go through them may raise `UnreadableError`."""


def read_format(path: Path) -> RawTable:
    """The rows of a file by its ending; raises `UnreadableError` if it is unreadable or of no known format."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in _READERS:
        raise UnreadableError(f"questions are read from files that end in {', '.join(_READERS)}, or .gz behind it")
    return _READERS[suffix](path)


def _read_text(path: Path) -> str:
    try:
        return decode(read_bytes(path))
    except UnreadableError as error:
        raise UnreadableError(f"{error}: save it as UTF-8, or copy it again") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error}): copy it again") from None


def _read_lines(path: Path) -> RawTable:
    rows: list[tuple[str, Cells]] = []
    for line, text in enumerate(_read_text(path).split("\n"), start=1):
        check_text_length(text, f"line {line}")
        if text.strip():
            value, wrong = _parse_json(text)
            rows.append((f"line {line}", wrong or as_row(value)))
    return RawTable("JSON Lines", (), rows)


def _parse_json(text: str) -> tuple[Any, str | None]:
    try:
        return parse_json(text), None
    except UnreadableError as error:
        return None, f"{error}; the file may be truncated"


def _read_json(path: Path) -> RawTable:
    text = _read_text(path)
    document, wrong = _parse_json(text)
    if wrong is None:
        return RawTable("JSON", (), list(_number(rows_of_document(document))))
    if text.lstrip()[:1] == "{" and "\n" in text.strip():
        return _read_lines(path)
    raise UnreadableError(f"{wrong}: copy it again")


def _number(rows: Iterable[Cells]) -> Iterable[tuple[str, Cells]]:
    return ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def _read_csv(path: Path) -> RawTable:
    text = _read_text(path)
    try:
        # Before it is interpreted, which takes long.
        check_line_lengths(text)
    except UnreadableError as error:
        raise UnreadableError(f"{error}: shorten it, or take it out") from None
    delimiter = "\t" if ".tsv" in path.suffixes else _find_delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[str, Cells]] = []
    header: tuple[str, ...] = ()
    limit = csv.field_size_limit(LONGEST_TEXT)
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = tuple(cell.strip() for cell in cells)
                continue
            wrong = f"has {len(cells)} cells, and the header {len(header)}: quote cells that hold the delimiter"
            record = dict(zip(header, cells, strict=False)) if len(cells) == len(header) else wrong
            rows.append((f"row {len(rows) + 1} (line {reader.line_num})", record))
    except csv.Error as error:
        raise UnreadableError(
            f"line {reader.line_num} is not CSV ({error}): a cell has at most {LONGEST_TEXT:,} characters"
        ) from None
    finally:
        csv.field_size_limit(limit)
    if twice := [name for name, times in Counter(header).items() if times > 1]:
        raise UnreadableError(f"two columns are called {twice[0]!r}: give each a name of its own")
    shown = "tab" if delimiter == "\t" else f'"{delimiter}"'
    return RawTable(f"CSV, delimiter {shown}", header, rows)


def _find_delimiter(text: str) -> str:
    """The delimiter that cuts the first rows into the most columns, as many in each; a comma if none does."""
    best = (1, ",")
    for delimiter in _DELIMITERS:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            counts = Counter(len(cells) for _, cells in zip(range(_LOOKED_AT), reader, strict=False) if cells)
        except csv.Error:
            continue
        columns, rows = counts.most_common(1)[0] if counts else (1, 0)
        # A row or two may be torn; a delimiter that cuts fewer alike is a mark of the texts.
        if columns > best[0] and rows >= 0.8 * counts.total():
            best = (columns, delimiter)
    return best[1]


def _read_parquet(path: Path) -> RawTable:
    try:
        with open_parquet(path) as file:
            return RawTable("Parquet", tuple(file.schema_arrow.names), list(_number(parquet_rows(file))))
    except UnreadableError as error:
        raise UnreadableError(f"{error}: copy it again") from None


def _read_excel(path: Path) -> RawTable:
    try:
        import openpyxl
    except ImportError:
        raise UnreadableError(
            "reading Excel needs openpyxl: pip install 'medexam[excel]', or save the sheet as CSV (UTF-8)"
        ) from None
    try:
        check_archive(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheets = {
            sheet.title: [list(cells) for cells in sheet.iter_rows(values_only=True)] for sheet in book.worksheets
        }
        book.close()
    except Exception as error:  # openpyxl raises whatever a damaged part of the file leads to
        raise UnreadableError(f"is not a whole Excel file ({first_line(error)}): save it again, or as CSV") from None
    sheets = {name: rows for name, rows in sheets.items() if any(cell is not None for cells in rows for cell in cells)}
    if len(sheets) != 1:
        names = ", ".join(sheets) or "none"
        raise UnreadableError(f"has {len(sheets)} filled sheets ({names}): keep one, or save it as CSV")
    ((name, lines),) = sheets.items()
    filled = [(line, row) for line, row in enumerate(lines, start=1) if any(cell is not None for cell in row)]
    header = tuple("" if cell is None else str(cell).strip() for cell in filled[0][1])
    kept = [place for place, column in enumerate(header) if column]
    rows: list[tuple[str, Cells]] = [
        (f"row {number} (line {line})", {header[place]: row[place] for place in kept})
        for number, (line, row) in enumerate(filled[1:], start=1)
    ]
    return RawTable(f"Excel, sheet {name}", tuple(header[place] for place in kept), rows)


_READERS: Mapping[str, Callable[[Path], RawTable]] = MappingProxyType(
    {
        ".jsonl": _read_lines,
        ".ndjson": _read_lines,
        ".json": _read_json,
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".parquet": _read_parquet,
        ".xlsx": _read_excel,
    }
)
