"""Where the options of a table may stand: in one column, a column each, beside wrong ones, or within the question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam.datasets.own.choice import read_all_options
from medexam.datasets.own.columns import Columns
from medexam.datasets.own.labels import ReadOptions
from medexam.datasets.own.names import WEAK, ColumnGroup, find_groups, find_named, plain_name, rank
from medexam.datasets.own.options import Settled, is_signed
from medexam.datasets.own.proposals.cells import HALF, MOST, holds_options, is_flat, share, splits
from medexam.datasets.own.proposals.drafts import TableSample, make_spec
from medexam.datasets.own.tables import SourceTable

_SIGNS = ("**", "*", "✓", "✔", "√", "=", "+", "[x]", "(x)", "(*)", "(correct)", "[correct]", "(correcta)", "(richtig)")
"""What stands beside a right option."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where options may stand."""

    settings: Mapping[str, Any]
    """Of `columns`."""
    used: tuple[str, ...]
    """Columns that hold no answer."""
    is_certain: bool
    """Whether its name or form says so; else an answer has to fit."""
    asks: str | None = None
    """What has to be said of the letters before the options; None if nothing."""

    def read(self, table: SourceTable, stem: str) -> list[Settled]:
        """Read the options of each row; raise `DatasetError` if it is not clear whether letters before them are
        labels.
        """
        spec = make_spec(table, "choice", {"stem": stem, "options": None, **self.settings})
        return read_all_options(table, Columns(spec.columns, table, ("stem",)))


def find_sources(sample: TableSample, stem: str) -> Iterator[Source]:
    """Find where the options may stand, the likeliest first."""
    other_columns = [column for column in sample.columns if column != stem]
    option_columns = find_named("options", other_columns)
    source_by_column: dict[str, Source] = {}
    for column in dict.fromkeys((*option_columns, *other_columns)):
        how = holds_options(sample.filled(column), is_named=column in option_columns)
        if how is not None:
            is_certain = column in option_columns and plain_name(column) not in WEAK
            source_by_column[column] = Source({"options": column, **how}, (column,), is_certain=is_certain)
    groups = [group for group in find_groups(other_columns) if _holds_texts(sample, group)]
    yield from (source_by_column.pop(column) for column in option_columns if column in source_by_column)
    yield from (
        Source({"options": [*group.columns]}, group.columns, is_certain=True) for group in groups if group.is_known
    )
    yield from _find_wrong(sample, other_columns, groups)
    if share(splits, sample.filled(stem)) >= MOST:
        yield Source({}, (), is_certain=True)
    yield from (
        source_by_column[column]
        for column in source_by_column
        if not any(rank(field, column) for field in ("context", "wrong", "image"))
    )
    for group in groups:
        if not group.is_known and not group.is_wrong and len(group.columns) > 2:
            yield Source({"options": [*group.columns]}, group.columns, is_certain=False)
    if sample.is_numbered:
        # Columns that a short block leaves over are asked for.
        behind = sample.table.columns[sample.table.columns.index(stem) + 1 :]
        for width in range(2, len(behind) + 1):
            yield Source({"options": [*behind[:width]]}, behind[:width], is_certain=False)


def find_sign(options: Sequence[Settled]) -> str | None:
    """Find the sign that stands beside some options of each question, mostly one, and not the others; None if none
    does.
    """
    texts = [row.texts for row in options if isinstance(row, ReadOptions)]
    for sign in _SIGNS:
        signed = [sum(is_signed(text, sign) for text in row) for row in texts]
        partial_rows = [0 < count < len(row) for count, row in zip(signed, texts, strict=True)]
        alone = any(text == sign for row in texts for text in row)
        if not alone and share(bool, partial_rows) >= MOST and signed.count(1) > len(signed) / 2:
            return sign
    return None


def _holds_texts(sample: TableSample, group: ColumnGroup) -> bool:
    """Return whether most rows have an option in these columns."""
    values = [sample.filled(column) for column in group.columns]
    rows = len(sample.table.rows)
    return all(share(is_flat, cells) > HALF for cells in values if cells) and len(values[0]) >= HALF * rows


def _find_wrong(sample: TableSample, columns: Sequence[str], groups: Sequence[ColumnGroup]) -> Iterator[Source]:
    """Find wrong options in columns of their own, beside the right one."""
    wrong = next((group.columns for group in groups if group.is_wrong), tuple(find_named("wrong", columns)[:1]))
    right = [column for column in find_named("answer", columns) if column not in wrong]
    if wrong and right and all(map(is_flat, sample.filled(right[0]))):
        yield Source({"options": [right[0], *wrong], "shuffled": True}, wrong, is_certain=True)
