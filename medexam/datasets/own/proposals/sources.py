"""Where the options of a table may stand: in one column, a column each, beside wrong ones, or within the question."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam.datasets.own.choice import read_all_options
from medexam.datasets.own.columns import Columns
from medexam.datasets.own.labels import ReadOptions
from medexam.datasets.own.names import WEAK, ColumnGroup, find_groups, find_named, plain_name, rank
from medexam.datasets.own.options import Settled, is_signed
from medexam.datasets.own.proposals.cells import HALF, MOST, holds_options, is_flat, is_mark, length, share, splits
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
    answer: str | None = None
    """The only column that may hold the answers, if columns have no names."""
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
    if sample.is_numbered:
        yield from _find_places(sample, stem)
        return
    other_columns = [column for column in sample.columns if column != stem]
    option_columns = find_named("options", other_columns, 2)
    source_by_column: dict[str, Source] = {}
    for column in (*option_columns, *(other for other in other_columns if other not in option_columns)):
        how = holds_options(sample.filled(column), is_named=column in option_columns)
        if how is not None:
            is_certain = column in option_columns and plain_name(column) not in WEAK
            source_by_column[column] = Source({"options": column, **how}, (column,), is_certain=is_certain)
    yield from (source_by_column[column] for column in option_columns if column in source_by_column)
    groups = [group for group in find_groups(other_columns) if _holds_texts(sample, group)]
    for group in groups:
        if group.is_known:
            yield Source({"options": list(group.columns)}, group.columns, is_certain=True)
    yield from _find_wrong(sample, other_columns, groups)
    if share(splits, sample.filled(stem)) >= MOST:
        yield Source({}, (), is_certain=True)
    for column, source in source_by_column.items():
        entries = [
            entry for value in sample.filled(column) for entry in (value if isinstance(value, list) else [value])
        ]
        are_records = all(isinstance(entry, Mapping) for entry in entries)
        other_fields = ("context", "wrong", "image", *(() if are_records else ("answer",)))
        if column not in option_columns and not any(rank(other, column) for other in other_fields):
            yield source
    for group in groups:
        if not group.is_known and not group.is_wrong and len(group.columns) > 2:
            yield Source({"options": list(group.columns)}, group.columns, is_certain=False)


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
    right = [column for column in find_named("answer", columns, 1) if column not in wrong]
    if wrong and right and all(map(is_flat, sample.filled(right[0]))):
        yield Source({"options": [right[0], *wrong], "shuffled": True}, wrong, is_certain=True)


def _find_places(sample: TableSample, stem: str) -> Iterator[Source]:
    """Find options in columns without names: they stand behind the question, up to the answer or to the end."""
    columns = sample.table.columns
    first = columns.index(stem) + 1
    values = {column: sample.filled(column) for column in columns}
    if first == len(columns) or (first == len(columns) - 1 and share(splits, sample.filled(stem)) >= MOST):
        yield Source({}, (), is_certain=True)
    for end in range(len(columns), first + 1, -1):
        block = columns[first:end]
        # The answer stands behind the options, or before the question.
        for answer in (columns[end : end + 1] or columns[: first - 1]) if _are_alike(block, values) else ():
            others = [column for column in columns if column not in (stem, answer, *block)]
            if not any(_are_alike((*block, other), values) for other in others):
                yield Source({"options": list(block)}, block, is_certain=False, answer=answer)


def _are_alike(block: Sequence[str], values: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether columns may all hold options, as far as their values say."""
    lengths = sorted(length(values[column]) for column in block)
    marks = {share(is_mark, values[column]) >= HALF for column in block}
    # Digits and single letters do not count where a column says the same in most rows.
    shapes = [Counter(re.sub(r"\d|\b[A-Za-z]\b", "0", str(value)) for value in values[column]) for column in block]
    repeats = {max(shape.values(), default=0) >= HALF * max(1, shape.total()) for shape in shapes}
    different = sorted(len(set(map(str, values[column]))) for column in block)
    return (
        len(marks) == len(repeats) == 1
        and lengths[-1] <= 4 * max(4.0, lengths[len(lengths) // 2])
        and 2 * different[0] > different[len(different) // 2]
        and all(is_flat(value) for column in block for value in values[column])
    )
