"""Reads a file of any common format into the cells of its rows: one function a format, chosen by the file's ending.

What is wrong with the whole file is an `UnreadableError` that says what to do; what is wrong with a row stands in its
place.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, dropwhile, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from medexam.datasets.own.documents import Cells, rows_of_document, split_case
from medexam.datasets.own.names import rank
from medexam.datasets.own.texts import normalise
from medexam.inputs import (
    LONGEST_TEXT,
    UnreadableError,
    check_archive,
    decode,
    first_line,
    open_parquet,
    parquet_rows,
    parse_json,
    read_bytes,
)
from medexam.plugins import load_added

FORMATS = "medexam.formats"
"""The group in which packages add formats: functions that read a path as a `RawTable`, None if it is not theirs."""
_DELIMITERS = (",", ";", "\t", "|")
_SHAPE = re.compile(r"0+(?:\.(0+))?(%?)")
"""A number as Excel shows it."""
_SAMPLE = 1 << 22
"""Characters at the beginning of a CSV file that tell its delimiter."""
_LOOKED_AT = 20
"""Filled rows that say what the columns are."""
_LONGEST_NAME, _LONGEST_WORDS = 6, 3
"""Words of a column's name; and of one that may be unknown."""


class RawTable(NamedTuple):
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
        is_text = suffix == ".txt" or suffix not in _READERS
        added = (read(path) for read in load_added(FORMATS).values()) if is_text else ()
        table = next(filter(None, added), None)
        if table is None and suffix not in _READERS:
            endings = ", ".join(_READERS)
            raise UnreadableError(f"questions are read from files that end in {endings}, also with .gz after it")
        yield table or _READERS[suffix](path)
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error}): copy it again") from None
    finally:
        csv.field_size_limit(limit)


def open_text(path: Path) -> TextIO:
    """Open the text of a file in UTF-8, or in UTF-16 with its mark; raise `UnreadableError` for any other."""
    content = read_bytes(path)
    try:
        decode(content)
    except UnreadableError as error:
        raise UnreadableError(f"{error}: save it as UTF-8, or copy it again") from None
    is_wide = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return io.TextIOWrapper(io.BytesIO(content), "utf-16" if is_wide else "utf-8-sig", newline="")


def _read_json(path: Path) -> RawTable:
    """Read a document, or a record on each line."""
    stream = open_text(path)
    first = _parse(next(filter(str.strip, stream), ""))
    has_more = any(map(str.strip, stream))
    stream.seek(0)
    # One line of JSON Lines may be a document, which holds lists and objects only; one record is none.
    parts = first.values() if isinstance(first, dict) else first
    is_document = ".json" in path.suffixes or all(isinstance(part, (list, dict)) for part in parts)
    if isinstance(first, str) or (is_document and not has_more):
        document = _parse(stream.read())
        if isinstance(document, str):
            raise UnreadableError(f"{document}: copy it again")
        return RawTable("JSON", (), _number(rows_of_document(document)))
    rows = ((number, _parse(line)) for number, line in enumerate(stream, start=1) if line.strip())
    return RawTable("JSON Lines", (), ((f"line {number}", each) for number, row in rows for each in split_case(row)))


def _parse(text: str) -> Any:
    """Parse a list or an object; return a text that says what is wrong if it is none."""
    try:
        value = parse_json(text)
    except UnreadableError as error:
        return f"{error}; the file may be truncated"
    return value if isinstance(value, (list, dict)) else f"is {value!r:.60}, not a list of questions, nor an object"


def _number(rows: Iterable[Cells]) -> Iterator[tuple[str, Cells]]:
    return ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def _read_text(path: Path) -> RawTable:
    """Read a table with a delimiter; a text file may hold JSON instead."""
    stream = open_text(path)
    sample = stream.read(_SAMPLE)
    is_plain = ".txt" in path.suffixes
    if is_plain and sample.lstrip()[:1] in ("[", "{"):
        return _read_json(path)
    delimiter = "\t" if ".tsv" in path.suffixes else _find_delimiter(sample)
    stream.seek(0)
    table = _make_grid(f'CSV, delimiter "{delimiter}"'.replace('"\t"', "tab"), cut_lines(stream, delimiter))
    if is_plain and len(table.columns) < 2:
        raise UnreadableError("holds no table")
    return table


def cut_lines(stream: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which each row ends, and its cells; no rows that are empty."""
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise UnreadableError(
            f"line {reader.line_num} is not CSV ({error}): a cell that begins with a quotation mark ends with one, "
            f"marks within it are doubled, and it has at most {LONGEST_TEXT:,} characters"
        ) from None


def _find_delimiter(sample: str) -> str:
    """Find the delimiter that cuts the first row into names, and most rows below into as many cells; a comma if none
    does.

    Of several, the one that cuts into the most. A first line `sep=;` says it.
    """
    if sample[:4].lower() == "sep=" and sample[4:5] in _DELIMITERS:
        return sample[4:5]

    def rate(delimiter: str) -> tuple[bool, int, int]:
        rows = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        try:
            table = list(dropwhile(lambda cells: len(cells) < 2, islice(filter(any, rows), _LOOKED_AT)))
        except csv.Error:
            table = []
        # A row or two may be torn; a delimiter that cuts fewer alike is a mark of the texts.
        alike = sum(len(cells) == len(table[0]) for cells in table)
        head = table[0] if table else []
        return 5 * alike >= 4 * len(table) > 0, sum(map(_is_name, head)), len(head)

    return max(_DELIMITERS, key=rate)


def _make_grid(form: str, lines: Iterator[tuple[int, Sequence[Any]]]) -> RawTable:
    """Name the columns of a sheet or CSV file by its header, below titles if there are any, or by numbers."""
    first = list(islice(lines, _LOOKED_AT))
    if not first:
        return RawTable(form, (), ())
    texts = [["" if cell is None else normalise(str(cell)).strip() for cell in cells] for _, cells in first]
    filled = [sum(map(bool, row)) for row in texts]
    usual = Counter(filled).most_common(1)[0][0]
    least = min(max(1, usual // 3) + 1, usual)
    titles = next(place for place, count in enumerate(filled) if count >= least)
    notes = [f'above the header stands "{" ".join(filter(None, row)):.60}"' for row in texts[:titles]]
    head, body = texts[titles], texts[titles + 1 :]
    # A first row holds a question if a cell asks or has many words, and none is called like one.
    asks = any(cell.endswith(("?", "？")) for cell in head)  # noqa: RUF001
    is_long = any(len(cell.split()) > _LONGEST_WORDS for cell in head)
    if len(head) > 1 and body and (asks or (is_long and not any(_is_name(cell, ("stem", "id")) for cell in head))):
        notes.append("no header, so columns are called by their numbers")
        names, above = [str(place) for place in range(1, len(head) + 1)], titles
    else:
        width = max(place for row in (head, *body) for place, cell in enumerate(row, start=1) if cell)
        names, above = [name or f"unnamed ({place})" for place, name in enumerate(head[:width], start=1)], titles + 1
        times = {name: [place for place, each in enumerate(names) if each == name] for name in names}
        names = [
            name if len(times[name]) == 1 else f"{name} {times[name].index(place) + 1}"
            for place, name in enumerate(names)
        ]
    return RawTable("; ".join([form, *notes]), tuple(names), name_rows(chain(first[above:], lines), names))


def name_rows(lines: Iterable[tuple[int, Sequence[Any]]], columns: Sequence[str]) -> Iterator[tuple[str, Cells]]:
    """Yield each row as messages call it, with its cells by column; or what is wrong if they are fewer or more, but for
    empty ones at the end.
    """
    width = len(columns)
    for number, (line, cells) in enumerate(lines, start=1):
        torn = len(cells) < width or any(cells[width:])
        wrong = f"has {len(cells)} cells, and the header {width}: quote cells that hold the delimiter"
        yield f"row {number} (line {line})", wrong if torn else dict(zip(columns, cells, strict=False))


def _is_name(cell: str, fields: Sequence[str] = ("stem", "options", "answer", "context", "id")) -> bool:
    """Return whether a cell is a name that columns have, and no question."""
    return len(cell.split()) <= _LONGEST_NAME and not cell.endswith("?") and any(rank(field, cell) for field in fields)


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
        sheets = {sheet.title: [[*map(_shown_in, row)] for row in sheet.iter_rows()] for sheet in book.worksheets}
        book.close()
    except Exception as error:  # openpyxl raises whatever a damaged part of the file leads to
        raise UnreadableError(f"is not a complete Excel file ({first_line(error)}): save it again, or as CSV") from None
    filled = {
        name: lines
        for name, rows in sheets.items()
        if (lines := [(n, row) for n, row in enumerate(rows, 1) if any(cell is not None for cell in row)])
    }
    if len(filled) != 1:
        shown = ", ".join(filled) or "none"
        raise UnreadableError(f"has {len(filled)} filled sheets ({shown}): keep one, or save it as CSV")
    ((name, lines),) = filled.items()
    places, cells = zip(*lines, strict=True)
    columns = [column for column in zip_longest(*cells) if any(cell is not None for cell in column)]
    return _make_grid(f"Excel, sheet {name}", zip(places, map(list, zip(*columns, strict=True)), strict=True))


def _shown_in(cell: Any) -> Any:
    """Return the value of a cell of Excel; a number with the decimals and the sign of a share that the sheet shows."""
    value, shape = cell.value, cell.number_format
    if isinstance(value, (int, float)) and not isinstance(value, bool) and (form := _SHAPE.fullmatch(shape)):
        return f"{value:.{len(form[1] or '')}{'%' if form[2] else 'f'}}"
    return value


_READERS: Mapping[str, Callable[[Path], RawTable]] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _read_json),
    **dict.fromkeys((".csv", ".tsv", ".txt"), _read_text),
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
}
"""Ending -> what reads the file."""
