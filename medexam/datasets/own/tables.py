"""A table of any common format: its rows, whose columns are not interpreted.

A file of the formats in `medexam.datasets.own.files`, or a data set of the Hugging Face hub. Nothing in it is run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from medexam.datasets.locating import find_own_file
from medexam.datasets.own.documents import Cells
from medexam.datasets.own.files import RawTable, open_format
from medexam.datasets.own.texts import clean_row
from medexam.datasets.rows import RowFault
from medexam.errors import DatasetError
from medexam.inputs import UnreadableError
from medexam.specs import DatasetSpec
from medexam.specs.columns import HubSpec

Record = Mapping[str, Any]
_LARGE = 1 << 30
"""Bytes of a hub data set from which it is streamed, and not stored in the cache of `datasets`."""


class CellError(ValueError):
    """What is wrong with a column of one row."""

    def __init__(self, column: str, detail: str) -> None:
        super().__init__(detail)
        self.column, self.detail = column, detail


class TableRow(NamedTuple):
    """One row of a file, with its texts cleaned."""

    number: int
    """From 1, without the header."""
    place: str
    """The row as messages call it, such as `row 3` or `line 3`."""
    record: Cells
    """Column -> value; or what is wrong with the row."""

    def fault(self, error: CellError) -> RowFault:
        """Describe what is wrong with a column of the row, or with the row itself."""
        return RowFault(f"{self.place}, column {error.column}" if error.column else self.place, error.detail)


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
    notes: tuple[str, ...] = ()
    """What a reader of the results should know of it."""

    def filled(self, column: str) -> list[Any]:
        """List the values of a column that are there."""
        values = (value_of(row.record, column) for row in self.rows)
        return [value for value in values if value is not None]


def read_own_table(spec: DatasetSpec) -> SourceTable:
    """Read the table that a spec of one's own questions names; raise `DatasetError` if it cannot be read or is
    empty.
    """
    if spec.path is not None:
        return read_file(spec.path)
    assert spec.hub is not None  # noqa: S101 - the spec's own validator requires one of both
    return _make_table(*_open_hub(spec.hub))


def read_file(path: Path) -> SourceTable:
    """Read the rows of a file by its ending; raise `DatasetError` if it is missing, unreadable, unknown or empty."""
    path = find_own_file(path)
    try:
        with open_format(path) as raw:
            return _make_table(str(path), raw, path.parent)
    except UnreadableError as error:
        raise DatasetError(f"{path}: {error}") from None


def _make_table(source: str, raw: RawTable, folder: Path = Path()) -> SourceTable:
    try:
        rows = tuple(TableRow(n, place, clean_row(cells, place)) for n, (place, cells) in enumerate(raw.rows, start=1))
    except UnreadableError as error:
        raise DatasetError(f"{source}: {error}") from None
    if not rows:
        raise DatasetError(f"{source}: holds no row")
    fields = (name for row in rows if isinstance(row.record, Mapping) for name in row.record)
    return SourceTable(source, folder, raw.format, raw.columns or tuple(dict.fromkeys(fields)), rows)


def value_of(record: Cells, column: str) -> Any:
    """Return the value of a column, or of a field within it, `outer.inner`; None if it is not there, or empty.

    Of a list of records it is the list of their values, None for those that lack the field.
    """
    value = _get(record, column) if isinstance(record, Mapping) else None
    is_empty = not value.strip() if isinstance(value, str) else value != value  # NaN
    return None if is_empty else value


def _get(record: Record, column: str) -> Any:
    if column in record:
        return record[column]
    outer, _, inner = column.partition(".")
    value = record.get(outer)
    if isinstance(value, Mapping):
        return _get(value, inner)
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        return None
    values = [_get(each, inner) for each in value]
    return values if any(content is not None for content in values) else None


def _open_hub(hub: HubSpec) -> tuple[str, RawTable]:
    """Open one split of a data set on the hub, and name it; one over `_LARGE` is streamed.

    Raises `DatasetError` that says what to do instead if it cannot be reached or holds no such split.
    """
    try:
        import datasets
    except ImportError:
        raise DatasetError(
            f"{hub.id}: reading the hub needs the `datasets` library: pip install 'medexam[data]', or download a file "
            "of it and set dataset.path"
        ) from None
    import httpx

    try:
        builder = datasets.load_dataset_builder(hub.id, hub.config, revision=hub.revision)
        streams = (builder.info.download_size or 0) > _LARGE
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
    return source, RawTable("hub", (), ((f"row {number}", record) for number, record in enumerate(records, start=1)))
