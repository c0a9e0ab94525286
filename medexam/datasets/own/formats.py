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

from medexam.datasets.own.json_shapes import Cells, rows_of_document, split_case
from medexam.datasets.own.names import rank
from medexam.datasets.own.texts import normalise
from medexam.inputs import (
    LONGEST_TEXT,
    UnreadableError,
    check_archive,
    check_length,
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
_INSTEAD = {".apkg": "export its notes as plain text", **dict.fromkeys((".xls", ".ods"), "save it as .xlsx or CSV")}
_DELIMITERS = (",", ";", "\t", "|")
_SHAPE = re.compile(r"0+(?:\.(0+))?(%?)")
"""A number as Excel shows it."""
_SAMPLE = 1 << 22
"""Characters at the beginning of a CSV file that tell its delimiter."""
_LOOKED_AT = 20
"""Filled rows that say what the columns are."""
_LONGEST_NAME, _LONGEST_WORDS = 6, 3
"""Words of a column's name; and of one that may be unknown."""
_SMALL = "a-záéíóúüñçàèìòùâêîôûëïöäßãõœæ"
_LETTERS, _AROUND = _SMALL[3:] + _SMALL[3:].upper(), "¿¡«»°€£§©®±²³¹×÷¼½¾"  # noqa: RUF001
_UNLIKELY = re.compile(
    f"[^\t\r\n -~{_LETTERS}{_AROUND}‹›“”„‘’–—…•·ºªµ™¢¶\xa0]|[{_SMALL[3:]}]{{3}}|[{_SMALL[3:].upper()}]{{3}}"  # noqa: RUF001
    f"|[{_SMALL}][{_SMALL[3:].upper()}{_AROUND}]+[{_SMALL}]"
)
"""What texts of western Europe do not hold, and bytes of another encoding soon give."""


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
            advice = f"; {_INSTEAD[suffix]}" if suffix in _INSTEAD else ""
            endings = ", ".join(_READERS)
            raise UnreadableError(
                f"questions are read from files that end in {endings}, also with .gz after it{advice}"
            )
        yield table or _READERS[suffix](path)
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error}): copy it again") from None
    finally:
        csv.field_size_limit(limit)


def open_text(path: Path) -> tuple[TextIO, str]:
    """Open the text of a file; also return what to say of its encoding: nothing if that is UTF-8."""
    try:
        content = read_bytes(path)
        encoding = _find_encoding(content)
    except UnreadableError as error:
        raise UnreadableError(f"{error}: save it as UTF-8, or copy it again") from None
    note = {"utf-8-sig": "", "cp1252": "; Windows-1252"}.get(encoding, "; UTF-16")
    return io.TextIOWrapper(io.BytesIO(content), encoding, newline=""), note


def _find_encoding(content: bytes) -> str:
    """Find what a text is written in: UTF-8, UTF-16 with its mark, or Windows-1252.

    Any bytes could be the last, so it is taken only if they give texts of western Europe. Raises `UnreadableError`.
    """
    encoding = "utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    for tried in (encoding, "cp1252"):
        try:
            text = content.decode(tried)
        except UnicodeDecodeError:
            continue
        if tried != "cp1252" or (encoding == "utf-8-sig" and _UNLIKELY.search(text) is None):
            return tried
    decode(content)
    raise UnreadableError(f"is not {encoding.upper()}")


def _read_json(path: Path) -> RawTable:
    """Read a document, or a record on each line."""
    stream, encoding = open_text(path)
    text = stream.read()
    try:
        document = parse_json(text)
        # One line of JSON Lines may be a document, and one record is none.
        if ".json" in path.suffixes or "\n" in text.strip() or not _is_record(document):
            return RawTable(f"JSON{encoding}", (), _number(rows_of_document(document)))
    except UnreadableError as error:
        lines = [line for line in text.splitlines(keepends=True) if line.strip()]
        if not str(error).startswith("is not JSON") or not lines or not _is_json(lines[0]):
            raise UnreadableError(f"{error}: copy it again, the file may be truncated") from None
    stream.seek(0)
    return RawTable(f"JSON Lines{encoding}", (), _parse_lines(stream))


def _is_json(line: str) -> bool:
    try:
        return isinstance(parse_json(line), (dict, list))
    except UnreadableError:
        return False


def _is_record(document: object) -> bool:
    return isinstance(document, dict) and not all(isinstance(value, (list, dict)) for value in document.values())


def _parse_lines(lines: Iterable[str]) -> Iterator[tuple[str, Cells]]:
    for number, line in enumerate(_check_lines(lines), start=1):
        if line.strip():
            try:
                rows = split_case(parse_json(line))
            except UnreadableError as error:
                rows = [f"{error}; the file may be truncated"]
            yield from ((f"line {number}", row) for row in rows)


def _number(rows: Iterable[Cells]) -> Iterator[tuple[str, Cells]]:
    return ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def _read_plain(path: Path) -> RawTable:
    """Read a text file: JSON, or else a table."""
    if open_text(path)[0].read(_SAMPLE).lstrip()[:1] in ("[", "{"):
        return _read_json(path)
    table = _read_csv(path)
    if len(table.columns) < 2:
        raise UnreadableError("holds no table")
    return table


def _read_csv(path: Path) -> RawTable:
    stream, encoding = open_text(path)
    sample = stream.read(_SAMPLE)
    delimiter = "\t" if ".tsv" in path.suffixes else _find_delimiter(sample)
    stream.seek(0)
    name = "tab" if delimiter == "\t" else f'"{delimiter}"'
    return _make_grid(f"CSV, delimiter {name}{encoding}", cut_lines(stream, delimiter))


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
            check_length(line, f"line {number}")
        yield line


def _find_delimiter(sample: str) -> str:
    """Find the delimiter that cuts the first row into names, and most rows below into as many cells; a comma if none
    does.

    Of several, the one that cuts into the most. A first line `sep=;` says it.
    """
    if sample[:4].lower() == "sep=" and sample[4:5] in _DELIMITERS:
        return sample[4:5]

    def rate(delimiter: str) -> tuple[int, int, int]:
        try:
            rows = list(
                islice(filter(any, csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)), _LOOKED_AT)
            )
        except csv.Error:
            rows = []
        table = list(dropwhile(lambda cells: len(cells) < 2, rows))
        if not table:
            return (0, 0, 0)
        # A row or two may be torn; a delimiter that cuts fewer alike is a mark of the texts.
        is_table = 5 * sum(len(cells) == len(table[0]) for cells in table) >= 4 * len(table)
        return (is_table * (3 - (table != rows)), sum(map(_is_name, table[0])), len(table[0]))

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
    names: list[str] = []
    for place, name in enumerate(head[:width]):
        # A name that is merged over all options stands in the first of their cells.
        before = head[place - 1] or names[-1] if place else ""
        names.append(name or (before if rank("options", before) else f"unnamed ({place + 1})"))
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
    filled = {
        name: [(line, cells) for line, cells in enumerate(rows, start=1) if any(cell is not None for cell in cells)]
        for name, rows in sheets.items()
    }
    names = [name for name, lines in filled.items() if lines]
    if len(names) != 1:
        raise UnreadableError(
            f"has {len(names)} filled sheets ({', '.join(names) or 'none'}): keep one, or save it as CSV"
        )
    lines = filled[names[0]]
    columns = list(zip_longest(*(cells for _, cells in lines)))
    used = [column for column in columns if any(cell is not None for cell in column)]
    rows = ((line, list(cells)) for (line, _), cells in zip(lines, zip(*used, strict=True), strict=True))
    return _make_grid(f"Excel, sheet {names[0]}", rows)


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
