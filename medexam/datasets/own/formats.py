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
from dataclasses import dataclass
from itertools import chain, dropwhile, islice, zip_longest
from pathlib import Path
from typing import Any, TextIO

from medexam.datasets.own.json_shapes import Cells, is_wrapper, rows_of_document, split_case
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
    # One line of JSON Lines may be a document; one record is none.
    if isinstance(first, str) or not (has_more or (".json" not in path.suffixes and not is_wrapper(first))):
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


def _read_plain(path: Path) -> RawTable:
    """Read a text file: JSON, or else a table."""
    if open_text(path).read(_SAMPLE).lstrip()[:1] in ("[", "{"):
        return _read_json(path)
    table = _read_csv(path)
    if len(table.columns) < 2:
        raise UnreadableError("holds no table")
    return table


def _read_csv(path: Path) -> RawTable:
    stream = open_text(path)
    sample = stream.read(_SAMPLE)
    delimiter = "\t" if ".tsv" in path.suffixes else _find_delimiter(sample)
    stream.seek(0)
    name = "tab" if delimiter == "\t" else f'"{delimiter}"'
    return _make_grid(f"CSV, delimiter {name}", cut_lines(stream, delimiter))


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
    columns, above, notes = find_header([cells for _, cells in first])
    return RawTable("; ".join([form, *notes]), columns, name_rows(chain(first[above:], lines), columns))


def find_header(rows: Sequence[Sequence[Any]]) -> tuple[tuple[str, ...], int, list[str]]:
    """Find how the columns are called by the first filled rows, how many rows stand above the data, and what was
    decided.
    """
    texts = [["" if cell is None else normalise(str(cell)).strip() for cell in row] for row in rows]
    filled = [sum(map(bool, row)) for row in texts]
    usual = Counter(filled).most_common(1)[0][0]
    least = min(max(1, usual // 3) + 1, usual)
    titles = next(place for place, count in enumerate(filled) if count >= least)
    notes = [f'above the header stands "{" ".join(filter(None, row)):.60}"' for row in texts[:titles]]
    head, body = texts[titles], texts[titles + 1 :]
    if len(head) > 1 and body and _is_data(head):
        notes.append("no header, so columns are called by their numbers")
        return tuple(str(place) for place in range(1, len(head) + 1)), titles, notes
    width = max(place for row in (head, *body) for place, cell in enumerate(row, start=1) if cell)
    names = [name or f"unnamed ({place})" for place, name in enumerate(head[:width], start=1)]
    times = Counter(names)
    counts: Counter[str] = Counter()
    for place, name in enumerate(names):
        counts[name] += 1
        names[place] = name if times[name] == 1 else f"{name} {counts[name]}"
    return tuple(names), titles + 1, notes


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


def _is_data(head: Sequence[str]) -> bool:
    """Return whether a first row holds a question: a cell that asks or has many words, and none is called like one."""
    asks = any(cell.endswith(("?", "？")) for cell in head)  # noqa: RUF001
    long = any(len(cell.split()) > _LONGEST_WORDS for cell in head)
    return asks or (long and not any(_is_name(cell, ("stem", "id")) for cell in head))


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
    numbered = {name: [(n, row) for n, row in enumerate(rows, 1) if _is_filled(row)] for name, rows in sheets.items()}
    names = [name for name, lines in numbered.items() if lines]
    if len(names) != 1:
        shown = ", ".join(names) or "none"
        raise UnreadableError(f"has {len(names)} filled sheets ({shown}): keep one, or save it as CSV")
    places, cells = zip(*numbered[name := names[0]], strict=True)
    columns = [column for column in zip_longest(*cells) if _is_filled(column)]
    rows = ((line, list(row)) for line, row in zip(places, zip(*columns, strict=True), strict=True))
    return _make_grid(f"Excel, sheet {name}", rows)


def _is_filled(cells: Iterable[Any]) -> bool:
    return any(cell is not None for cell in cells)


def _shown_in(cell: Any) -> Any:
    """Return the value of a cell of Excel; a number with the decimals and the sign of a share that the sheet shows."""
    value, shape = cell.value, cell.number_format
    if isinstance(value, (int, float)) and not isinstance(value, bool) and (form := _SHAPE.fullmatch(shape)):
        return f"{value:.{len(form[1] or '')}{'%' if form[2] else 'f'}}"
    return value


_READERS: Mapping[str, Callable[[Path], RawTable]] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _read_json),
    **dict.fromkeys((".csv", ".tsv"), _read_csv),
    ".txt": _read_plain,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
}
