"""Reads a table of any common format into rows, which it does not interpret.

JSON Lines, JSON, CSV, TSV, Parquet and Excel, each but Parquet and Excel also behind gzip, and data sets of the Hugging
Face hub. A data file is data: nothing in it is run.
"""

import ast
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from medexam.datasets.locating import find_own_file
from medexam.datasets.rows import Fault
from medexam.errors import DatasetError
from medexam.inputs import (
    LONGEST_TEXT,
    UnreadableError,
    check_archive,
    check_length,
    check_line_lengths,
    decode,
    first_line,
    open_parquet,
    parquet_rows,
    parse_json,
    read_bytes,
)
from medexam.specs import DatasetSpec
from medexam.specs.columns import HubSpec

Record = Mapping[str, Any]
LARGE = 1 << 30
"""Bytes of a hub data set from which it is streamed, and not stored in the cache of `datasets`."""
_DELIMITERS = (",", ";", "\t", "|")
_LOOKED_AT = 20
"""Rows that tell the delimiter of a CSV file."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a file, unchanged."""

    number: int
    """From 1, without the header."""
    place: str
    """The row as messages call it, such as `row 3` or `line 3`."""
    record: Record | str
    """Column -> value; or what is wrong with the row."""

    def fault(self, column: str, detail: str) -> Fault:
        """What is wrong with a column of the row; an empty `column` is the row itself."""
        return Fault(f"{self.place}, column {column}" if column else self.place, detail)


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A whole table."""

    source: str
    """The path, or the hub id with its configuration, split and revision."""
    folder: Path
    """Where the names of pictures start from."""
    format: str
    """Such as `CSV, delimiter ";"`."""
    columns: tuple[str, ...]
    """In the order of the source; of JSON every field that some row has."""
    rows: tuple[TableRow, ...]


def read_own_table(spec: DatasetSpec) -> SourceTable:
    """The table that a spec of one's own questions names; raises `DatasetError` if it cannot be read or is empty."""
    if spec.path is not None:
        return read_file(spec.path)
    assert spec.hub is not None  # noqa: S101 - the spec's own validator requires one of both
    return read_hub(spec.hub)


def read_file(path: Path) -> SourceTable:
    """The rows of a file by its ending; raises `DatasetError` if it is missing, unreadable, unknown or empty."""
    path = find_own_file(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in _READERS:
        raise DatasetError(f"{path}: questions are read from files that end in {', '.join(_READERS)}, or .gz behind it")
    kind, columns, rows = _READERS[suffix](path)
    if not rows:
        raise DatasetError(f"{path}: holds no row")
    for row in rows:
        _check_texts(path, row.place, row.record)
    return SourceTable(str(path), path.parent, kind, columns or _all_fields(rows), tuple(rows))


def get(record: Record, column: str) -> Any:
    """The value of a column, or of a field within it, `outer.inner`; raises `KeyError` if there is none.

    Of a list of records it is the list of their values, None for those that lack the field.
    """
    if column in record:
        return record[column]
    outer, dot, inner = column.partition(".")
    value = record.get(outer) if dot else None
    if isinstance(value, Mapping):
        return get(value, inner)
    if isinstance(value, list):
        within = [each for each in value if isinstance(each, Mapping)]
        if within and len(within) == len(value) and any(_has(each, inner) for each in within):
            return [get(each, inner) if _has(each, inner) else None for each in within]
    raise KeyError(column)


def _has(record: Record, column: str) -> bool:
    try:
        get(record, column)
    except KeyError:
        return False
    return True


def unpack(value: Any) -> Any:
    """A list or mapping that stands in a cell as text, as JSON or Python writes it; any other value as it is."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{"):
        return value
    for parse in (parse_json, ast.literal_eval):
        try:
            found = parse(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, (list, dict)):
            return found
    return value


Rows = tuple[str, tuple[str, ...], list[TableRow]]
"""The format's name, its columns if it names them, and its rows."""


def _read_text(path: Path) -> str:
    try:
        return decode(read_bytes(path))
    except UnreadableError as error:
        raise DatasetError(f"{path}: {error}: save it as UTF-8, or copy it again") from None
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error}): copy it again") from None


def _read_lines(path: Path) -> Rows:
    rows: list[TableRow] = []
    for line, text in enumerate(_read_text(path).split("\n"), start=1):
        _check_length(path, text, f"line {line}")
        if text.strip():
            rows.append(_json_row(len(rows) + 1, f"line {line}", *_parse_json(text)))
    return "JSON Lines", (), rows


def _check_length(path: Path, text: str, what: str) -> None:
    try:
        check_length(text, what)
    except UnreadableError as error:
        raise DatasetError(f"{path}: {error}: shorten it, or take it out") from None


def _check_texts(path: Path, place: str, value: object) -> None:
    """Raise `DatasetError` for a text within a row's value that is longer than any of a question."""
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            _check_length(path, value, f"{place} holds a text that")
    elif isinstance(value, Mapping):
        for each in value.values():
            _check_texts(path, place, each)
    elif isinstance(value, list):
        for each in value:
            _check_texts(path, place, each)


def _parse_json(text: str) -> tuple[Any, str | None]:
    try:
        return parse_json(text), None
    except UnreadableError as error:
        return None, f"{error}; the file may be truncated"


def _json_row(number: int, place: str, value: object, wrong: str | None = None) -> TableRow:
    if wrong is None and not isinstance(value, Mapping):
        wrong = f"is {value!r:.60}, not an object with a field for each column"
    return TableRow(number, place, wrong if wrong is not None else value)  # type: ignore[arg-type]


def _read_json(path: Path) -> Rows:
    text = _read_text(path)
    document, wrong = _parse_json(text)
    if wrong is not None:
        if text.lstrip()[:1] == "{" and "\n" in text.strip():
            return _read_lines(path)
        raise DatasetError(f"{path}: {wrong}: copy it again")
    if isinstance(document, Mapping):
        lists = {name: value for name, value in document.items() if isinstance(value, list)}
        if len(lists) != 1:
            raise DatasetError(
                f"{path}: is an object with {len(lists)} lists ({', '.join(lists) or 'none'}); it needs a list of "
                "questions, or an object with one list"
            )
        (document,) = lists.values()
    if not isinstance(document, list):
        raise DatasetError(f"{path}: is {document!r:.60}, not a list of questions, nor an object with one")
    return "JSON", (), [_json_row(number, f"row {number}", value) for number, value in enumerate(document, start=1)]


def _read_csv(path: Path) -> Rows:
    text = _read_text(path)
    try:
        # Before it is interpreted, which takes long.
        check_line_lengths(text)
    except UnreadableError as error:
        raise DatasetError(f"{path}: {error}: shorten it, or take it out") from None
    delimiter = "\t" if ".tsv" in path.suffixes else _find_delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[TableRow] = []
    header: tuple[str, ...] = ()
    limit = csv.field_size_limit(LONGEST_TEXT)
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = tuple(cell.strip() for cell in cells)
                continue
            place = f"row {len(rows) + 1} (line {reader.line_num})"
            wrong = f"has {len(cells)} cells, and the header {len(header)}: quote cells that hold the delimiter"
            record = dict(zip(header, cells, strict=False)) if len(cells) == len(header) else wrong
            rows.append(TableRow(len(rows) + 1, place, record))
    except csv.Error as error:
        raise DatasetError(
            f"{path}, line {reader.line_num}: is not CSV ({error}): a cell has at most {LONGEST_TEXT:,} characters"
        ) from None
    finally:
        csv.field_size_limit(limit)
    if twice := [name for name, times in Counter(header).items() if times > 1]:
        raise DatasetError(f"{path}: two columns are called {twice[0]!r}: give each a name of its own")
    shown = "tab" if delimiter == "\t" else f'"{delimiter}"'
    return f"CSV, delimiter {shown}", header, rows


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


def _read_parquet(path: Path) -> Rows:
    try:
        with open_parquet(path) as file:
            return "Parquet", tuple(file.schema_arrow.names), _number(parquet_rows(file))
    except UnreadableError as error:
        raise DatasetError(f"{path}: {error}: copy it again") from None


def _read_excel(path: Path) -> Rows:
    try:
        import openpyxl
    except ImportError:
        raise DatasetError(
            f"{path}: reading Excel needs openpyxl: pip install 'medexam[excel]', or save the sheet as CSV (UTF-8)"
        ) from None
    try:
        check_archive(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheets = {
            sheet.title: [list(cells) for cells in sheet.iter_rows(values_only=True)] for sheet in book.worksheets
        }
        book.close()
    except Exception as error:  # openpyxl raises whatever a damaged part of the file leads to
        raise DatasetError(
            f"{path}: is not a whole Excel file ({first_line(error)}): save it again, or as CSV"
        ) from None
    sheets = {name: rows for name, rows in sheets.items() if any(cell is not None for cells in rows for cell in cells)}
    if len(sheets) != 1:
        names = ", ".join(sheets) or "none"
        raise DatasetError(f"{path}: has {len(sheets)} filled sheets ({names}): keep one, or save it as CSV")
    ((name, cells),) = sheets.items()
    filled = [(line, row) for line, row in enumerate(cells, start=1) if any(cell is not None for cell in row)]
    header = tuple("" if cell is None else str(cell).strip() for cell in filled[0][1])
    kept = [place for place, column in enumerate(header) if column]
    rows = [
        TableRow(number, f"row {number} (line {line})", {header[place]: row[place] for place in kept})
        for number, (line, row) in enumerate(filled[1:], start=1)
    ]
    return f"Excel, sheet {name}", tuple(header[place] for place in kept), rows


def read_hub(hub: HubSpec) -> SourceTable:
    """One split of a data set on the hub; one over `LARGE` is streamed.

    Raises `DatasetError` that says what to do instead if it cannot be reached or holds no such split.
    """
    try:
        import datasets
    except ImportError:
        raise DatasetError(
            f"{hub.id}: reading the hub needs the `datasets` library: pip install 'medexam[hub]', or download a file "
            "of it and set dataset.path"
        ) from None
    import httpx

    try:
        builder = datasets.load_dataset_builder(hub.id, hub.config, revision=hub.revision)
        streams = (builder.info.download_size or 0) > LARGE
        part = datasets.load_dataset(hub.id, hub.config, split=hub.split, revision=hub.revision, streaming=streams)
        for name, feature in (part.features or {}).items():
            if isinstance(feature, datasets.Image):
                part = part.cast_column(name, datasets.Image(decode=False))
        records = [dict(record) for record in part]
    except (OSError, ValueError, RuntimeError, httpx.HTTPError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DatasetError(
            f"cannot read {hub.id} from the Hugging Face hub ({reason}): check id, config, split and revision, the "
            "network, HF_HUB_OFFLINE and HF_ENDPOINT; or download a file of it elsewhere (`hf download --repo-type "
            f"dataset {hub.id}`) and set dataset.path to it"
        ) from None
    source = " ".join(filter(None, [hub.id, hub.config, hub.split])) + (f"@{hub.revision}" if hub.revision else "")
    if not records:
        raise DatasetError(f"{source}: holds no row")
    return SourceTable(source, Path(), "hub", tuple(records[0]), tuple(_number(records)))


def _number(records: Iterable[Record]) -> list[TableRow]:
    return [TableRow(number, f"row {number}", record) for number, record in enumerate(records, start=1)]


def _all_fields(rows: Iterable[TableRow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows if isinstance(row.record, Mapping) for name in row.record))


_READERS: Mapping[str, Callable[[Path], Rows]] = MappingProxyType(
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


def records_of(table: SourceTable) -> Iterator[tuple[TableRow, Record]]:
    """The rows that could be read."""
    for row in table.rows:
        if isinstance(row.record, Mapping):
            yield row, row.record
