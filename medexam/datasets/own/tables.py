"""Reads a table of any common format: its rows, whose columns are not interpreted.

A file, one function a format by the file's ending, or a data set of the Hugging Face hub. Nothing in it is run. What is
wrong with a whole file is an `UnreadableError` that says what to do; what is wrong with a row stands in its place.
"""

import codecs
import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

from medexam import files
from medexam.datasets.locating import fetch_records, find_own_file
from medexam.datasets.own.documents import Cells, rows_of_document, split_case
from medexam.datasets.own.texts import clean_row, normalise, rank
from medexam.datasets.rows import RowFault
from medexam.errors import DatasetError
from medexam.files import UnreadableError
from medexam.plugins import load_added
from medexam.specs import DatasetSpec

T = TypeVar("T")
Record = Mapping[str, Any]
_DELIMITERS = (",", ";", "\t", "|")
_SHAPE = re.compile(r"0+(?:\.(0+))?(%?)")
"""A number as Excel shows it."""
_BEHIND = r"\}\s*\n\s*\{"
"""Between records of several lines that stand in no list."""
_SAMPLE, _LOOKED_AT = 1 << 22, 20
"""Characters of a CSV file that tell its delimiter, and filled rows that say what the columns are."""
_LONGEST_NAME, _LONGEST_WORDS = 6, 3
"""Words of a column's name; and of one that may be unknown."""


class CellError(ValueError):
    """What is wrong with a row: the column, empty if it is the whole row, and the detail."""


class RawTable(NamedTuple):
    """The rows of a file before their texts are looked at."""

    format: str
    """Such as `CSV, delimiter ";"`."""
    columns: tuple[str, ...]
    """In the order of the file; empty if the format names none apart from its rows."""
    rows: Iterable[tuple[str, Cells]]
    """Each row as messages call it, with its cells. To go through them may raise `UnreadableError`."""
    doubt: str = ""
    """What the file shows a reader beside the cells, such as pictures and hidden rows."""


class TableRow(NamedTuple):
    """One row of a file, with its texts cleaned."""

    number: int
    """From 1, without the header."""
    place: str
    """The row as messages call it, such as `row 3` or `line 3`."""
    record: Cells
    """Column -> value; or what is wrong with the row."""

    def with_cells(self, cells: Mapping[str, Any]) -> "TableRow":
        """Add cells to the row, unless something is wrong with it."""
        return self if isinstance(self.record, str) else self._replace(record={**self.record, **cells})


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A whole table."""

    source: str
    """The path, or the hub id with its configuration, split and revision."""
    format: str
    columns: tuple[str, ...]
    """In the order of the source; of JSON every field that some row has."""
    rows: tuple[TableRow, ...]
    doubt: str = ""
    """See `RawTable.doubt`."""
    notes: tuple[str, ...] = ()
    """What a reader of the results should know of it."""

    def filled(self, column: str) -> list[Any]:
        """List the values of a column that are there."""
        return [value for row in self.rows if (value := value_of(row.record, column)) is not None]


def try_each(change: Callable[[Any], T], rows: list[Any]) -> list[T | RowFault]:
    """Put what `change` makes of each row in its place, which lets go of the row; or what is wrong with the row.

    `change` raises `CellError`, and is not called with what is wrong already.
    """
    for n, row in enumerate(rows):
        try:
            if isinstance(row, TableRow) and isinstance(row.record, str):
                raise CellError("", row.record)
            rows[n] = row if isinstance(row, RowFault) else change(row)
        except CellError as error:
            place, (column, detail) = getattr(row, "row", row).place, error.args
            rows[n] = RowFault(f"{place}, column {column}" if column else place, detail)
    return rows


def split_faults(results: Sequence[T | RowFault]) -> tuple[tuple[T, ...], tuple[RowFault, ...]]:
    """Split what became of rows into results, and what is wrong with the others."""
    faults = tuple(each for each in results if isinstance(each, RowFault))
    return tuple(each for each in results if not isinstance(each, RowFault)), faults


def value_of(record: Cells, column: str) -> Any:
    """Return the value of a column, or of a field within it, `outer.inner`; None if it is not there, or empty.

    Of a list of records it is the list of their values, None for those that lack the field.
    """
    if isinstance(record, str):
        return None
    value = record.get(column)
    if column not in record and "." in column:
        outer, _, inner = column.partition(".")
        value = record.get(outer)
        if isinstance(value, Mapping):
            return value_of(value, inner)
        records = value if isinstance(value, list) else []
        values = [value_of(each, inner) for each in records if isinstance(each, Mapping)]
        values = values if len(values) == len(records) else []
        value = values if any(each is not None for each in values) else None
    is_empty = not value.strip() if isinstance(value, str) else value != value  # NaN
    return None if is_empty else value


def read_own_table(spec: DatasetSpec, unread: Collection[str] = ()) -> SourceTable:
    """Read the table that a spec names, without the cells of `unread` columns; raise `DatasetError` if it cannot be
    read or is empty.
    """
    if spec.path is not None:
        return read_file(spec.path, unread)
    hub = spec.hub
    assert hub is not None  # noqa: S101 - the spec's own validator requires one of both
    records = fetch_records(hub.id, hub.config, hub.split, hub.revision)
    source = " ".join(filter(None, [hub.id, hub.config, hub.split])) + (f"@{hub.revision}" if hub.revision else "")
    rows = ((f"row {number}", record) for number, record in enumerate(records, start=1))
    return _make_table(source, RawTable("hub", (), rows), unread)


def read_file(path: Path, unread: Collection[str] = (), *, raw_texts: bool = False) -> SourceTable:
    """Read the rows of a file by its ending; raise `DatasetError` if it is missing, unreadable, unknown or empty.

    A text and a file of another ending are first shown to the formats of installed packages. Cells of `unread` columns
    are dropped; `raw_texts` leaves texts as they are.
    """
    path = find_own_file(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    try:
        is_text = suffix == ".txt" or suffix not in _READERS
        # Functions that read a path as a `RawTable`, None if it is not theirs.
        raw_tables = (read(path) for read in load_added("medexam.formats").values()) if is_text else ()
        raw = next(filter(None, raw_tables), None)
        if raw is None and suffix not in _READERS:
            endings = ", ".join(_READERS)
            raise UnreadableError(f"questions are read from files that end in {endings}, also with .gz after it")
        return _make_table(str(path), raw or _READERS[suffix](path), unread, raw_texts=raw_texts)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error}): copy it again") from None
    except UnreadableError as error:
        raise DatasetError(f"{path}: {error}") from None


def _make_table(source: str, raw: RawTable, unread: Collection[str], *, raw_texts: bool = False) -> SourceTable:
    rows, names = list[TableRow](), dict[str, None]()
    for number, (place, each) in enumerate(raw.rows, start=1):
        cells = each if raw_texts else clean_row(each)
        if not isinstance(cells, str):
            names |= dict.fromkeys(cells) if not raw.columns else {}
            cells = {name: cell for name, cell in cells.items() if name not in unread} if unread else cells
        rows.append(TableRow(number, place, cells))
    if not rows:
        raise DatasetError(f"{source}: holds no row")
    return SourceTable(source, raw.format, raw.columns or tuple(names), tuple(rows), raw.doubt)


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open the text of a file in UTF-8, or in UTF-16 with its mark; raise `UnreadableError` for any other."""
    with files.open_unpacked(path) as content:
        is_wide = content.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        content.seek(0)
        try:
            yield io.TextIOWrapper(content, "utf-16" if is_wide else "utf-8-sig", newline="")
        except UnicodeDecodeError as error:
            place = content.tell() - len(error.object) + error.start
            detail = f"is not UTF-8 (byte {place:,} is {error.object[error.start]:#04x})"
            raise UnreadableError(f"{detail}: save it as UTF-8, or copy it again") from None


def _check_fields(fields: Sequence[tuple[str, Any]]) -> None:
    if twice := [name for name, times in Counter(name for name, _ in fields).items() if times > 1]:
        raise UnreadableError(f"has the field {twice[0]!r:.60} twice in one object")


def _read_json(path: Path) -> RawTable:
    """Read a document, or a record on each line."""

    def parse(text: str) -> Any:
        try:
            value = files.parse_json(text)
            json.loads(text, object_pairs_hook=_check_fields)
        except UnreadableError as error:
            return str(error)
        return value if isinstance(value, (list, dict)) else f"is {value!r:.60}, not a list of questions, nor an object"

    def read_lines() -> Iterator[tuple[str, Cells]]:
        with open_text(path) as stream:
            rows = ((number, parse(line)) for number, line in enumerate(stream, start=1) if line.strip())
            yield from ((f"line {number}", each) for number, row in rows for each in split_case(row))

    with open_text(path) as stream:
        first = parse(next(filter(str.strip, stream), ""))
        has_more = any(map(str.strip, stream))
        stream.seek(0)
        # One line of JSON Lines may be a document, which holds lists and objects only; one record is none.
        parts = first.values() if isinstance(first, dict) else first
        is_document = ".json" in path.suffixes or all(isinstance(part, (list, dict)) for part in parts)
        if not isinstance(first, str) and (has_more or not is_document):
            return RawTable("JSON Lines", (), read_lines())
        text = stream.read()
    document = parse(text)
    if isinstance(document, str) and re.search(_BEHIND, text):
        document = parse(f"[{re.sub(_BEHIND, '},{', text)}]")
    if isinstance(document, str):
        raise UnreadableError(f"{document}: correct it, or copy it again")
    return RawTable("JSON", (), ((f"row {n}", row) for n, row in enumerate(rows_of_document(document), start=1)))


def _read_text(path: Path) -> RawTable:
    """Read a table with a delimiter; a text file may hold JSON instead."""
    with open_text(path) as stream:
        sample = stream.read(_SAMPLE)
    is_plain = ".txt" in path.suffixes
    if is_plain and sample.lstrip()[:1] in ("[", "{"):
        return _read_json(path)
    delimiter = "\t" if ".tsv" in path.suffixes else _find_delimiter(sample)

    def cut() -> Iterator[tuple[int, list[str]]]:
        with open_text(path) as stream:
            yield from cut_lines(stream, delimiter)

    table = _make_grid(f'CSV, delimiter "{delimiter}"'.replace('"\t"', "tab"), cut())
    if is_plain and len(table.columns) < 2:
        raise UnreadableError("holds no table")
    return table


def cut_lines(stream: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which each row ends, and its cells; no rows that are empty."""
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    try:
        with files.long_cells():
            yield from ((reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells))
    except csv.Error as error:
        raise UnreadableError(
            f"line {reader.line_num} is not CSV ({error}): a cell that begins with a quotation mark ends with one, "
            f"marks within it are doubled, and it has at most {files.LONGEST_TEXT:,} characters"
        ) from None


def _find_delimiter(sample: str) -> str:
    """Find the delimiter that cuts into names and as many cells below, the most of all; a line `sep=;` says it."""
    if sample[:4].lower() == "sep=" and sample[4:5] in _DELIMITERS:
        return sample[4:5]

    def rate(delimiter: str) -> tuple[bool, int, int]:
        try:
            with files.long_cells():
                lines = islice(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter), _LOOKED_AT)
                rows = [cells for cells in lines if len(cells) > 1]
        except csv.Error:
            rows = []
        # A row or two may be torn; a delimiter that cuts fewer alike is a mark of the texts.
        head = rows[0] if rows else []
        return 5 * [*map(len, rows)].count(len(head)) >= 4 * len(rows) > 0, sum(map(_is_name, head)), len(head)

    return max(_DELIMITERS, key=rate)


def _make_grid(form: str, lines: Iterator[tuple[int, Sequence[Any]]], doubt: str = "") -> RawTable:
    """Name the columns of a sheet or CSV file by its header, below titles if there are any, or by numbers."""
    first = list(islice(lines, _LOOKED_AT))
    if not first:
        return RawTable(form, (), ())
    texts = [["" if cell is None else normalise(str(cell)).strip() for cell in cells] for _, cells in first]
    filled = [sum(map(bool, row)) for row in texts]
    usual = Counter(filled).most_common(1)[0][0]
    least = min(max(1, usual // 3) + 1, usual)
    titles = next(place for place, count in enumerate(filled) if count >= least)
    notes = [form, *(f'above the header stands "{" ".join(filter(None, row)):.60}"' for row in texts[:titles])]
    head, body = texts[titles], texts[titles + 1 :]
    # A first row holds a question if a cell asks or has many words, and none is called like one.
    asks = any(cell.endswith(("?", "？")) for cell in head)  # noqa: RUF001
    is_long = any(len(cell.split()) > _LONGEST_WORDS for cell in head)
    if len(head) > 1 and body and (asks or (is_long and not any(_is_name(cell, ("stem", "id")) for cell in head))):
        notes.append("no header, so columns are called by their numbers")
        names, above = [str(place) for place in range(1, len(head) + 1)], titles
    else:
        width = max(place for row in (head, *body) for place, cell in enumerate(row, start=1) if cell)
        called = [name or f"unnamed ({place})" for place, name in enumerate(head[:width], start=1)]
        earlier = [called[:place].count(name) for place, name in enumerate(called, start=1)]
        names = [f"{name} {n}" if called.count(name) > 1 else name for name, n in zip(called, earlier, strict=True)]
        above = titles + 1
    return RawTable("; ".join(notes), tuple(names), name_rows(chain(first[above:], lines), names), doubt)


def name_rows(lines: Iterable[tuple[int, Sequence[Any]]], columns: Sequence[str]) -> Iterator[tuple[str, Cells]]:
    """Yield each row as messages call it, with its cells by column, or that it has fewer or more."""
    width = len(columns)
    for number, (line, cells) in enumerate(lines, start=1):
        torn = len(cells) < width or any(cells[width:])
        wrong = f"has {len(cells)} cells, and the header {width}: quote cells that hold the delimiter"
        yield f"row {number} (line {line})", wrong if torn else dict(zip(columns, cells, strict=False))


def _is_name(cell: str, fields: Sequence[str] = ("stem", "options", "answer", "context", "id")) -> bool:
    """Return whether a cell is a name that columns have, and no question."""
    return len(cell.split()) <= _LONGEST_NAME and not cell.endswith("?") and any(rank(field, cell) for field in fields)


def _read_parquet(path: Path) -> RawTable:
    def read() -> Iterator[tuple[str, Cells]]:
        try:
            with files.open_parquet(path) as file:
                rows = (each for row in files.parquet_rows(file) for each in split_case(row))
                yield from ((f"row {number}", row) for number, row in enumerate(rows, start=1))
        except UnreadableError as error:
            raise UnreadableError(f"{error}: copy it again") from None

    return RawTable("Parquet", (), read())


def _read_excel(path: Path) -> RawTable:
    try:
        import openpyxl
    except ImportError:
        raise UnreadableError(
            "reading Excel needs openpyxl: pip install 'medexam[data]', or save the sheet as CSV (UTF-8)"
        ) from None

    def show(cell: Any) -> Any:
        """Return the value of a cell; a number with the decimals and the sign of a share that the sheet shows."""
        form = _SHAPE.fullmatch(cell.number_format) if type(cell.value) in (int, float) else None
        return f"{cell.value:.{len(form[1] or '')}{'%' if form[2] else 'f'}}" if form else cell.value

    try:
        book = openpyxl.load_workbook(path, data_only=True)
    except Exception as error:  # openpyxl raises whatever a damaged part of the file leads to
        reason = files.first_line(error)
        raise UnreadableError(f"is not a complete Excel file ({reason}): save it again, or as CSV") from None
    visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    filled = [sheet for sheet in visible if any(any(row) for row in sheet.values)]
    if len(filled) != 1:
        names = ", ".join(sheet.title for sheet in filled) or "none"
        raise UnreadableError(f"has {len(filled)} filled sheets ({names}): keep one, or save it as CSV")
    (sheet,) = filled
    for area in [*sheet.merged_cells.ranges]:
        # A cell that is merged over rows is that of each of them.
        sheet.unmerge_cells(area.coord)
        for row in range(area.min_row + 1, area.max_row + 1):
            sheet.cell(row, area.min_col).value = sheet.cell(area.min_row, area.min_col).value
    rows = [(n, cells) for n, cells in enumerate(sheet.iter_rows(), 1) if any(cell.value is not None for cell in cells)]
    extras: dict[str, list[Any]] = {
        "pictures": [name for name in zipfile.ZipFile(path).namelist() if name.startswith("xl/media/")],
        "hidden rows": [number for number, _ in rows if sheet.row_dimensions[number].hidden],
        "hidden columns": [name for name, each in sheet.column_dimensions.items() if each.hidden],
        "struck texts": [cell for _, cells in rows for cell in cells if cell.value and cell.font.strike],
        "comments": [cell for _, cells in rows for cell in cells if cell.comment],
    }
    doubt = ", ".join(f"{name}: {len(cases)}" for name, cases in extras.items() if cases)
    hidden = [f"sheet {each.title} is hidden" for each in book.worksheets if each not in visible]
    columns = [column for column in zip(*(map(show, cells) for _, cells in rows), strict=True) if {*column} - {None}]
    lines = zip([number for number, _ in rows], zip(*columns, strict=True), strict=True)
    form = "; ".join([f"Excel, sheet {sheet.title}", *hidden])
    return _make_grid(form, lines, doubt)


_READERS: Mapping[str, Callable[[Path], RawTable]] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _read_json),
    **dict.fromkeys((".csv", ".tsv", ".txt"), _read_text),
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
}
"""Ending -> what reads the file."""
