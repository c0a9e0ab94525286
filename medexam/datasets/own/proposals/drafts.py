"""A proposal in the making, and the rows that it is made from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medexam.datasets.own.proposals.cells import is_labelled
from medexam.datasets.own.tables import SourceTable, value_of
from medexam.datasets.own.texts import unpack
from medexam.datasets.rows import Row, TaskRow
from medexam.questions import Language
from medexam.specs import DatasetSpec
from medexam.specs.columns import NOT_READ, KeySpec
from medexam.specs.dataset import OwnKind

if TYPE_CHECKING:
    from medexam.datasets.own.proposals.audit import Account

LOOKED_AT = 400
"""Rows, spread over the file, that show what its columns are; all rows are then read so."""


@dataclass(frozen=True)
class TableSample:
    """Some rows of a table, by column."""

    table: SourceTable

    @classmethod
    def of(cls, table: SourceTable) -> "TableSample":
        """Take rows that are spread over a table."""
        return cls(replace(table, rows=table.rows[:: max(1, len(table.rows) // LOOKED_AT)]))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns; instead of one that holds records, the fields of these."""
        return tuple(inner for column in self.table.columns for inner in self._within(column, 0))

    @property
    def is_numbered(self) -> bool:
        """Whether the table has no header."""
        return self.table.columns == tuple(str(place) for place in range(1, len(self.table.columns) + 1))

    def filled(self, column: str) -> list[Any]:
        """List the values that are there."""
        values = (value_of(row.record, column) for row in self.table.rows)
        return [value for value in values if value is not None]

    def _within(self, column: str, depth: int) -> Iterator[str]:
        values = self.filled(column)
        if values and depth < 2 and all(isinstance(record, Mapping) and not is_labelled(record) for record in values):
            for name in dict.fromkeys(name for record in values for name in record):
                yield from self._within(f"{column}.{name}", depth + 1)
        else:
            yield column


@dataclass
class Proposal:
    """How a file of questions may be read, as far as that is known, and what it gives."""

    sample: TableSample
    full_sample: TableSample
    """All rows."""
    answers: KeySpec | None
    """The key in another file; None if there is none."""
    kind: OwnKind = "choice"
    columns: dict[str, Any] = field(default_factory=dict)
    """As the spec has them; None reads a field from no column."""
    language: Language | None = None
    """None if it is not told, or none that ships."""
    notes: list[str] = field(default_factory=list)
    """What was recognised, a line each."""
    open: dict[str, str] = field(default_factory=dict)
    """Key of the `dataset` part of a spec -> what has to be decided before a run."""
    rows: tuple[Row, ...] | tuple[TaskRow, ...] = ()
    """The questions so read; empty if `columns` are open."""
    agreeing: list[str] = field(default_factory=list)
    """Columns that give the same answers as the one that is read."""
    accounts: list["Account"] = field(default_factory=list)
    """What becomes of each column."""

    @property
    def table(self) -> SourceTable:
        """The whole table."""
        return self.full_sample.table

    def ask(self, name: str, question: str) -> None:
        """Leave a field of `columns` open."""
        self.columns[name] = None
        self.open[f"columns.{name}"] = " ".join(question.split())

    def holds_records(self, column: str | None) -> bool:
        """Return whether a column holds mappings, or lists of them, whose entries are told apart by their names."""
        values = [unpack(value) for value in self.sample.filled(column)] if column else []
        return bool(values) and all(
            isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(each, Mapping) for each in value))
            for value in values
        )

    def unused(self) -> list[str]:
        """List the columns that no field is read from."""
        used = {column for value in self.columns.values() for column in columns_in(value)}
        return [column for column in self.sample.columns if column not in used]


def columns_in(value: Any) -> list[str]:
    """List the columns that a field names."""
    return [value] if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else []


def make_spec(table: SourceTable, kind: OwnKind, columns: Mapping[str, Any]) -> DatasetSpec:
    """Make the spec that reads a table so; None as a column switches its field off, where a field can be."""
    stated = {name: NOT_READ if column is None else column for name, column in columns.items()}
    return DatasetSpec.model_validate({"kind": kind, "path": Path(table.source), "columns": stated})


def show(column: Any) -> str:
    """Show a column, or several, in one line."""
    return ", ".join(columns_in(column)) or str(column)
