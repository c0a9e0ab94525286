"""Reads a file of any common format into the cells of its rows: one function a format, chosen by the file's ending.

What is wrong with the whole file is an `UnreadableError` that says what to do; what is wrong with a row stands in its
place.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, dropwhile, islice, zip_longest
from pathlib import Path
from typing import Any, TextIO

from medexam.datasets.own.grids import LOOKED_AT, Cells, count_names, find_header, name_cells
from medexam.datasets.own.json_shapes import as_row, is_wrapper, rows_of_document, split_case
from medexam.datasets.own.texts import check_text_length, find_encoding
from medexam.inputs import (
    LONGEST_TEXT,
    UnreadableError,
    check_archive,
    first_line,
    open_parquet,
    parquet_rows,
    parse_json,
    read_bytes,
)
from medexam.plugins import load_added

FORMATS = "medexam.formats"
"""The group in which packages add formats: functions that read a path as a `RawTable`, None if it is not theirs."""
_INSTEAD = {".apkg": "export its notes as plain text", **dict.fromkeys((".xls", ".ods"), "save it as .xlsx or CSV")}
_DELIMITERS = (",", ";", "\t", "|")
_ESCAPED_MARK = re.compile(r'[^\\"]\\"[^,;\t|\r\n"]')
_DOUBLED_MARK = re.compile(r'\w""')
"""A quotation mark within a cell behind a backslash, and one that is doubled as CSV has it."""
_SHAPE = re.compile(r"0+(?:\.(0+))?(%?)")
"""A number as Excel shows it."""
_SAMPLE = 1 << 22
"""Characters at the beginning of a CSV file that tell its delimiter."""


@dataclass(frozen=True, slots=True)
class RawTable:
    """The rows of a file before their texts are looked at."""

    format: str
    """Such as `CSV, delimiter ";"`."""
    columns: tuple[str, ...]
    """In the order of the file; empty if the format names none apart from its rows."""
    rows: Iterable[tuple[str, Cells]]
    """Each row as messages call it, with its cells. To go through them may raise `UnreadableError`."""


@contextmanager
def open_format(path: Path) -> Iterator[RawTable]:
    """Open the rows of a file by its ending, for as long as the block takes.

    A text and a file of another ending are first shown to the formats of installed packages. Raises `UnreadableError`
    if it is unreadable or of no known format.
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    limit = csv.field_size_limit(LONGEST_TEXT)
    try:
        if suffix == ".txt" or suffix not in _READERS:
            tables = (read(path) for read in load_added(FORMATS).values())
            if (table := next(filter(None, tables), None)) is not None:
                yield table
                return
        if suffix not in _READERS:
            advice = f"; {_INSTEAD[suffix]}" if suffix in _INSTEAD else ""
            endings = ", ".join(_READERS)
            raise UnreadableError(
                f"questions are read from files that end in {endings}, also with .gz after it{advice}"
            )
        yield _READERS[suffix](path)
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error}): copy it again") from None
    finally:
        csv.field_size_limit(limit)


def open_text(path: Path) -> tuple[TextIO, str]:
    """Open the text of a file; also return what to say of its encoding: nothing if that is UTF-8."""
    try:
        content = read_bytes(path)
        encoding = find_encoding(content)
    except UnreadableError as error:
        raise UnreadableError(f"{error}: save it as UTF-8, or copy it again") from None
    note = {"utf-8-sig": "", "cp1252": "; Windows-1252"}.get(encoding, f"; {encoding.upper()[:6]}")
    return io.TextIOWrapper(io.BytesIO(content), encoding, newline=""), note


def _read_json(path: Path, *, by_lines: bool = False) -> RawTable:
    """Read a document, or a record on each line. A record on each line is what is expected if a file is read
    `by_lines`.
    """
    stream, encoding = open_text(path)
    first, wrong = _parse_json(next(filter(str.strip, stream), "")) if by_lines else (None, "not looked at")
    stream.seek(0)
    if wrong or is_wrapper(first):
        text = stream.read()
        document, wrong = _parse_json(text)
        if wrong is None:
            return RawTable(f"JSON{encoding}", (), _number(rows_of_document(document)))
        if not by_lines and (text.lstrip()[:1] != "{" or "\n" not in text.strip()):
            raise UnreadableError(f"{wrong}: copy it again")
        stream.seek(0)
    return RawTable(f"JSON Lines{encoding}", (), _parse_lines(stream))


def _parse_lines(lines: Iterable[str]) -> Iterator[tuple[str, Cells]]:
    for number, line in enumerate(_check_lines(lines), start=1):
        if line.strip():
            value, wrong = _parse_json(line)
            for row in split_case(wrong or as_row(value)):
                yield f"line {number}", row


def _parse_json(text: str) -> tuple[Any, str | None]:
    try:
        return parse_json(text), None
    except UnreadableError as error:
        return None, f"{error}; the file may be truncated"


def _number(rows: Iterable[Cells]) -> Iterator[tuple[str, Cells]]:
    return ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def _read_plain(path: Path) -> RawTable:
    """Read a text file: JSON, or else a table."""
    if open_text(path)[0].read().lstrip()[:1] in ("[", "{"):
        return _read_json(path, by_lines=True)
    table = _read_csv(path)
    if len(table.columns) < 2:
        raise UnreadableError("holds no table")
    return table


def _read_csv(path: Path) -> RawTable:
    stream, encoding = open_text(path)
    sample = stream.read(_SAMPLE)
    delimiter = "\t" if ".tsv" in path.suffixes else _find_delimiter(sample)
    stream.seek(0)
    delimiter_name = "tab" if delimiter == "\t" else f'"{delimiter}"'
    is_escaped = _ESCAPED_MARK.search(sample) is not None and _DOUBLED_MARK.search(sample) is None
    lines = cut_lines((line.replace('\\"', '""') for line in stream) if is_escaped else stream, delimiter)
    first = list(islice(lines, LOOKED_AT))
    if not first:
        return RawTable("CSV", (), ())
    header = find_header([cells for _, cells in first])
    rows = name_rows(chain(first[header.above :], lines), header.columns)
    return RawTable("; ".join([f"CSV, delimiter {delimiter_name}{encoding}", *header.notes]), header.columns, rows)


def cut_lines(stream: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which each row ends, and its cells; no rows that are empty."""
    reader = csv.reader(_check_lines(stream), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise UnreadableError(
            f"line {reader.line_num} is not CSV ({error}): a cell that begins with a quotation mark ends with one, "
            f"marks within it are doubled, and it has at most {LONGEST_TEXT:,} characters"
        ) from None


def _check_lines(stream: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        if len(line) > LONGEST_TEXT:
            check_text_length(line, f"line {number}")
        yield line


def name_rows(lines: Iterable[tuple[int, Sequence[Any]]], columns: Sequence[str]) -> Iterator[tuple[str, Cells]]:
    """Yield each row as messages call it, with its cells by column, or with what is wrong with it."""
    for number, (line, cells) in enumerate(lines, start=1):
        yield f"row {number} (line {line})", name_cells(cells, columns)


def _find_delimiter(sample: str) -> str:
    """Find the delimiter that the header says: it cuts the first row into names, and the rows below into as many cells.

    Of several that do, the one that cuts into the most; a comma if none cuts at all. A first line `sep=;` says it.
    """
    if sample[:4].lower() == "sep=" and sample[4:5] in _DELIMITERS:
        return sample[4:5]

    def rate(delimiter: str) -> tuple[int, int, int]:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        try:
            rows = [cells for cells in islice(reader, LOOKED_AT) if any(cells)]
        except csv.Error:
            rows = []
        table = list(dropwhile(lambda cells: len(cells) < 2, rows))
        if not table:
            return (0, 0, 0)
        columns, times = Counter(map(len, table)).most_common(1)[0]
        # A row or two may be torn; a delimiter that cuts fewer alike is a mark of the texts.
        is_table = len(table[0]) == columns and times >= 0.8 * len(table)
        return (is_table * (3 - (table != rows)), count_names(table[0]), len(table[0]))

    return max(_DELIMITERS, key=rate)


def _read_parquet(path: Path) -> RawTable:
    def read() -> Iterator[Cells]:
        try:
            with open_parquet(path) as file:
                for row in parquet_rows(file):
                    yield from split_case(row)
        except UnreadableError as error:
            raise UnreadableError(f"{error}: copy it again") from None

    return RawTable("Parquet", (), _number(read()))


def _read_excel(path: Path) -> RawTable:
    try:
        import openpyxl
    except ImportError:
        raise UnreadableError(
            "reading Excel needs openpyxl: pip install 'medexam[data]', or save the sheet as CSV (UTF-8)"
        ) from None
    try:
        check_archive(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        filled = {sheet.title: list(_filled_rows(sheet)) for sheet in book.worksheets}
        book.close()
    except Exception as error:  # openpyxl raises whatever a damaged part of the file leads to
        raise UnreadableError(f"is not a complete Excel file ({first_line(error)}): save it again, or as CSV") from None
    sheets = {name: lines for name, lines in filled.items() if lines}
    if len(sheets) != 1:
        names = ", ".join(sheets) or "none"
        raise UnreadableError(f"has {len(sheets)} filled sheets ({names}): keep one, or save it as CSV")
    ((name, lines),) = sheets.items()
    columns = list(zip_longest(*(cells for _, cells in lines)))
    used = [column for column in columns if any(cell is not None for cell in column)]
    lines = [(line, list(cells)) for (line, _), cells in zip(lines, zip(*used, strict=True), strict=True)]
    header = find_header([cells for _, cells in lines[:LOOKED_AT]])
    rows = name_rows(lines[header.above :], header.columns)
    return RawTable("; ".join([f"Excel, sheet {name}", *header.notes]), header.columns, rows)


def _filled_rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    for line, row in enumerate(sheet.iter_rows(), start=1):
        cells = [_displayed(cell) for cell in row]
        if any(cell is not None for cell in cells):
            yield line, cells


def _displayed(cell: Any) -> Any:
    """Return the value of a cell of Excel; a number with the decimals and the sign of a share that the sheet shows."""
    value, shape = cell.value, cell.number_format
    if isinstance(value, (int, float)) and not isinstance(value, bool) and (form := _SHAPE.fullmatch(shape)):
        return f"{value:.{len(form[1] or '')}{'%' if form[2] else 'f'}}"
    return value


_READERS: Mapping[str, Callable[[Path], RawTable]] = {
    **dict.fromkeys((".jsonl", ".ndjson"), partial(_read_json, by_lines=True)),
    ".json": _read_json,
    **dict.fromkeys((".csv", ".tsv"), _read_csv),
    ".txt": _read_plain,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
}
