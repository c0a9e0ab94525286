"""Names the columns of a sheet or CSV file: by its header, below titles if there are any, or by numbers if it has none.

What is decided differs from the plain case of one header is said.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from medexam.datasets.own.names import rank
from medexam.datasets.own.texts import normalise

Cells = Mapping[str, Any] | str
"""Column -> value of one row; or what is wrong with the row."""
LOOKED_AT = 20
"""Filled rows that say what the columns are."""
_LONGEST_NAME = 6
"""Words of a column's name."""


@dataclass(frozen=True, slots=True)
class Header:
    """How the columns of a grid are called."""

    columns: tuple[str, ...]
    """A name for each place of a row."""
    above: int
    """Filled rows before the first row of data: titles, and the header itself if there is one."""
    notes: tuple[str, ...]
    """What was decided."""


def find_header(rows: Sequence[Sequence[Any]]) -> Header:
    """Find how the columns of a grid are called, by its first filled rows (`LOOKED_AT` or fewer, at least one)."""
    texts = [["" if cell is None else normalise(str(cell)).strip() for cell in row] for row in rows]
    titles = _count_titles(texts)
    notes = [f'above the header stands "{" ".join(filter(None, row)):.60}"' for row in texts[:titles]]
    head, body = texts[titles], texts[titles + 1 :]
    if _is_data(head, body):
        notes.append("no header, so columns are called by their numbers")
        return Header(tuple(str(place) for place in range(1, len(head) + 1)), titles, tuple(notes))
    width = max(place for row in (head, *body) for place, cell in enumerate(row, start=1) if cell)
    names = list(head[:width])
    for place, name in enumerate(names):
        if not name:
            # A name that is merged over all options stands in the first of their cells.
            before = names[place - 1] if place else ""
            names[place] = before if rank("options", before) else f"unnamed ({place + 1})"
    for name, times in Counter(names).items():
        if times > 1:
            numbered = [f"{name} {number}" for number in range(1, times + 1)]
            notes.append(f"{times} columns are called {name!r}, here {', '.join(numbered)}")
            places = [place for place, other in enumerate(names) if other == name]
            for place, new in zip(places, numbered, strict=True):
                names[place] = new if new not in names else f"{new} ({place + 1})"
    return Header(tuple(names), titles + 1, tuple(notes))


def name_cells(cells: Sequence[Any], columns: Sequence[str]) -> Cells:
    """Name the cells of a row by column; return what is wrong if they are fewer or more, but for empty ones at the
    end.
    """
    width = len(columns)
    if len(cells) < width or any(cells[width:]):
        return f"has {len(cells)} cells, and the header {width}: quote cells that hold the delimiter"
    return dict(zip(columns, cells, strict=False))


def count_names(row: Iterable[str]) -> int:
    """Count how many cells of a row look like the name of a column."""
    return sum(_is_name(cell) for cell in row)


def _count_titles(rows: Sequence[Sequence[str]]) -> int:
    """Count how many rows at the top hold less than a row of the table does, such as a title in the first cell."""
    filled = [sum(map(bool, row)) for row in rows]
    width = Counter(filled).most_common(1)[0][0]
    most = min(max(1, width // 3), width - 1)
    is_table = (count > most or not (row[0] or width > 3) for row, count in zip(rows[:-1], filled, strict=False))
    return next((place for place, is_row in enumerate(is_table) if is_row), len(rows) - 1)


def _is_name(cell: str) -> bool:
    """Return whether a cell is a name that columns have, and no question."""
    fields = ("stem", "options", "answer", "context", "id")
    return len(cell.split()) <= _LONGEST_NAME and not cell.endswith("?") and any(rank(field, cell) for field in fields)


def _is_data(head: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Return whether a first row asks something where the rows below have their questions."""
    columns = [[row[place] for row in body if place < len(row) and row[place]] for place in range(len(head))]
    if len(body) < 2 or len(head) < 2 or not any(columns):
        return False
    lengths = [median(map(len, column or [""])) for column in columns]
    first = head[lengths.index(max(lengths))]
    return first.endswith(("?", "？")) or (len(first.split()) > 3 and not count_names(head))  # noqa: RUF001
