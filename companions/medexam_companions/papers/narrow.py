"""The papers' tables cut to the width of a terminal."""

import textwrap
from collections.abc import Sequence
from itertools import groupby

from medexam.experiments import LONG_NAME
from medexam.tables import NONE, Captioned, Table
from medexam_companions.papers.paper_tables import PaperTable

GUTTER = 2
"""Characters between the columns of a table."""


def build_paper_tables(tables: Sequence[PaperTable], width: int) -> list[Captioned]:
    """Build the tables for a terminal of `width` characters; a wider one of models is cut, the names first in
    each part.
    """
    parts: list[Captioned] = []
    for table in tables:
        *first, last = _cut(table.table, width) if table.layout.rows == "models" else [table.table]
        parts += [*((part, "") for part in first), (last, table.legend)]
    return parts


def _cut(table: Table, width: int) -> list[Table]:
    """Cut the table's columns into parts that fit, each behind the text columns, without models that have nothing
    there.

    The names in the first column run down their rows, which are as many as the names need.
    """
    texts = table.text_columns
    headers = [header.replace("-", "-\n").replace(" ", "\n") for header in table.headers]
    blocks: list[list[tuple[int, tuple[str, ...]]]] = []
    for model, group in groupby(enumerate(table.rows), lambda numbered: numbered[1][0]):
        rows = list(group)
        names = textwrap.wrap(model, LONG_NAME)
        rows += [(-1, ("",) * len(table.headers))] * (len(names) - len(rows))
        names += [""] * (len(rows) - len(names))
        blocks.append([(place, (name, *row[1:])) for name, (place, row) in zip(names, rows, strict=True)])
    widths = [
        GUTTER + max(map(len, [*header.split("\n"), *(row[column] for rows in blocks for _, row in rows)]))
        for column, header in enumerate(headers)
    ]
    parts: list[list[int]] = [[]]
    for column in range(texts, len(headers)):
        if parts[-1] and sum(widths[:texts]) + sum(widths[index] for index in (*parts[-1], column)) > width:
            parts.append([])
        parts[-1].append(column)
    tables = []
    for part in parts:
        filled = [rows for rows in blocks if any(row[column] not in (NONE, "") for _, row in rows for column in part)]
        part_rows = [row for rows in filled or blocks for row in rows]
        columns = [*range(texts), *part]
        tables.append(
            Table(
                table.title,
                tuple(headers[column] for column in columns),
                tuple(tuple(row[column] for column in columns) for _, row in part_rows),
                best=frozenset(
                    (number, columns.index(column))
                    for number, (place, _) in enumerate(part_rows)
                    for column in columns
                    if (place, column) in table.best
                ),
                text_columns=texts,
            )
        )
    return tables
