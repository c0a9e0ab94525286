"""A proposal in the making, and the rows that it is made from: what a column holds, not what its name says."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from medexam.datasets.own.labels import CellError, split_marked
from medexam.datasets.own.names import find_groups
from medexam.datasets.own.tables import SourceTable, value_of
from medexam.datasets.own.texts import unpack
from medexam.specs import DatasetSpec
from medexam.specs.columns import NOT_READ
from medexam.specs.dataset import OwnKind

LOOKED_AT = 400
"""Rows, spread over the file, that show what its columns are; all rows are then read so."""
MOST, HALF = 0.9, 0.5
"""The share of rows that show what a column is, the others being bad; and the share that it may be."""
_BETWEEN = ("\n", "|", ";", " / ", ",")
"""What stands between the options of one cell that have no letters."""
_ASKS = re.compile(r"[?？؟:：…_]|\.\.\.")  # noqa: RUF001 - as Chinese and Arabic write it
_LABEL = re.compile(r"(?:[(\[]?(?:[A-Za-z]\b|(?:[A-Za-z]+[\W_]*)?\d{1,4}(?:\.0)?)[)\].]?[,; ]*)+")
"""Letters, or a number such as `12` or `Question 12`."""


@dataclass(frozen=True)
class Sample:
    """Some rows of a table, by column."""

    table: SourceTable

    @classmethod
    def of(cls, table: SourceTable) -> "Sample":
        """Rows that are spread over a table."""
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
        """The values that are there."""
        values = (value_of(row.record, column) for row in self.table.rows)
        return [value for value in values if value is not None]

    def _within(self, column: str, depth: int) -> Iterator[str]:
        values = self.filled(column)
        if values and depth < 2 and all(isinstance(each, Mapping) and not _is_options(each) for each in values):
            for name in dict.fromkeys(name for each in values for name in each):
                yield from self._within(f"{column}.{name}", depth + 1)
        else:
            yield column


@dataclass
class Draft:
    """What is proposed so far."""

    sample: Sample
    whole: SourceTable
    columns: dict[str, Any] = field(default_factory=dict)
    """As the spec has them; None reads a field from no column."""
    seen: list[str] = field(default_factory=list)
    open: dict[str, str] = field(default_factory=dict)
    """Key of the `dataset` part of a spec -> what has to be decided."""

    def ask(self, name: str, what: str) -> None:
        """Leave a field of `columns` open."""
        self.columns[name] = None
        self.open[f"columns.{name}"] = " ".join(what.split())

    @property
    def used(self) -> set[str]:
        """The columns that fields are read from."""
        return {each for value in self.columns.values() for each in columns_in(value)}


def columns_in(value: Any) -> list[str]:
    """The columns that a field names."""
    return [value] if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else []


def make_spec(table: SourceTable, kind: OwnKind, columns: Mapping[str, Any]) -> DatasetSpec:
    """The spec that reads a table so; None as a column switches its field off, where a field can be."""
    stated = {name: NOT_READ if column is None else column for name, column in columns.items()}
    return DatasetSpec.model_validate({"kind": kind, "path": Path(table.source), "columns": stated})


def share(is_so: Callable[[Any], object], values: Sequence[Any]) -> float:
    """The share of values of which something is so; 0 if there are none."""
    return sum(bool(is_so(value)) for value in values) / len(values) if values else 0.0


def is_flat(value: object) -> bool:
    """Whether a value is a text or number, and no list or mapping, neither in a text."""
    return not isinstance(unpack(value), (list, tuple, Mapping, bytes))


def is_text(values: Sequence[Any]) -> bool:
    """Whether values are texts, and not letters or numbers alone."""
    return share(lambda value: isinstance(value, str) and not is_mark(value), values) >= MOST


def is_mark(value: object) -> bool:
    """Whether a value is a letter or a number alone."""
    return _LABEL.fullmatch(str(value).strip()) is not None


def asks(value: object) -> bool:
    """Whether a text ends as questions do, or as its options begin."""
    text = str(value).strip()
    return _ASKS.match(text[-1:]) is not None or text.endswith("...") or splits(text)


def splits(value: object) -> bool:
    """Whether a text ends in options behind letters or numbers."""
    try:
        return split_marked(str(value)) is not None
    except CellError:
        return True


def length(values: Sequence[Any]) -> float:
    """The mean number of characters."""
    return sum(len(str(value)) for value in values) / len(values) if values else 0.0


def holds_options(values: Sequence[Any], *, named: bool) -> Mapping[str, Any] | None:
    """What of `columns` reads options from one column: nothing more, or what stands between; None if it holds none.

    Texts without letters are only taken apart in a column that is `named` as options are.
    """
    if share(_are_options, values) >= MOST:
        return {}
    texts = [value for value in values if isinstance(value, str)]
    if not named or len(texts) < len(values):
        return None
    for between in _BETWEEN:
        counts = [len(text.split(between)) for text in texts]
        if min(counts, default=0) > 1 and (between in "\n|" or (len(set(counts)) == 1 and len(counts) > 2)):
            return {"between": between}
    return None


def _are_options(value: object) -> bool:
    value = unpack(value)
    if isinstance(value, str):
        try:
            found = split_marked(value, bare=True)
        except CellError:
            return True
        return found is not None and not found.stem
    if isinstance(value, Mapping):
        return _is_options(value)
    return (
        isinstance(value, (list, tuple))
        and len(value) > 1
        and not any(isinstance(each, list) and len(each) != 2 for each in value)
    )


def _is_options(value: Mapping[str, Any]) -> bool:
    """Whether a mapping is one of labels and texts, and no record."""
    if "answer_start" in value:
        return True
    if any(isinstance(value.get(name), list) for name in ("text", "label")):
        return all(isinstance(value.get(name), list) for name in ("text", "label"))
    groups = find_groups([str(name) for name in value])
    return bool(groups) and len(groups[0].columns) >= len(value) - 1


def show(column: Any) -> str:
    """A column, or several, in one line."""
    return ", ".join(columns_in(column)) or str(column)
