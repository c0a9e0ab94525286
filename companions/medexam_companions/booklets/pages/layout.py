"""Glyphs to lines in reading order, headers and footers left out.

A line knows where it stands, so that a question can be cut out of its page later. It knows nothing of questions.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from medexam_companions.booklets.pages.beside import separate_options
from medexam_companions.booklets.pages.columns import find_gutters, order_rows
from medexam_companions.booklets.pages.frames import Box
from medexam_companions.booklets.pages.glyphs import PageText
from medexam_companions.booklets.pages.margins import find_page_margins, is_inside
from medexam_companions.booklets.pages.rows import find_rows, render_glyphs
from medexam_companions.booklets.pages.spaces import find_usual_gap
from medexam_companions.booklets.pages.tables import CELL_GAP, Cells, find_tables, split_cells

_ENOUGH_PAGES = 3
"""Left or right pages, which may have other margins, that tell their usual edge."""
_INDENTED = 4.0
"""Points further in at which a column is taken to begin with an indented line."""
_FARTHEST = 60.0
"""Points further in at which a column is another one."""


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line of one column."""

    text: str
    """A table's row stands between line breaks, its cells apart."""
    box: Box
    baseline: float
    column: int
    """0 for the first or only column; a line across both counts as the first."""
    indent: float
    """Points from the left edge of its column."""
    guessed: int = 0
    """Characters that the PDF does not tell, so that their codes were taken for them."""


@dataclass(frozen=True, slots=True)
class BookletLayout:
    """A booklet's lines in reading order, and what was found about its pages."""

    lines: tuple[Line, ...]
    columns: int
    """1 or 2: the most that a page has."""
    left_out: tuple[str, ...]
    """Headers and footers, each once, with `#` for their digits."""
    leading: float
    """Points between the baselines of two lines of a paragraph."""
    drawings: tuple[Box, ...]
    """Those that do not repeat at the same place of several pages, as emblems do."""


def read_booklet_layout(pages: Sequence[PageText]) -> BookletLayout:
    """Lay out the lines of `pages` in reading order."""
    body = _most_common(round(glyph.size, 1) for page in pages for glyph in page.glyphs)
    rows = {page.number: find_rows(page.glyphs, body) for page in pages}
    usual_gap = find_usual_gap(sorted(row.glyphs, key=lambda glyph: glyph.x0) for page in rows.values() for row in page)
    margins = find_page_margins(pages, rows, body, usual_gap)
    body_rows = {
        page.number: [row for row in rows[page.number] if (page.number, row.baseline) not in margins] for page in pages
    }
    inside = {page.number: [row for row in body_rows[page.number] if is_inside(row, page.height)] for page in pages}
    gutters = find_gutters(inside, {page.number: page.width for page in pages})
    cells = list(
        separate_options(
            [
                split_cells(page.number, column, row.baseline, glyphs)
                for page in pages
                for column, row, glyphs in order_rows(body_rows[page.number], gutters[page.number])
            ]
        )
    )
    edges, tables = _find_edges(cells), find_tables(cells)
    lines = tuple(
        _make_line(line, edges[line.page, line.column], body, usual_gap, is_row=place in tables)
        for place, line in enumerate(cells)
    )
    return BookletLayout(
        lines=lines,
        columns=2 if any(gutters.values()) else 1,
        left_out=tuple(sorted(set(margins.values()))),
        leading=_find_leading(lines) or 1.2 * body,
        drawings=_find_single_drawings(pages),
    )


def _find_edges(lines: Sequence[Cells]) -> dict[tuple[int, int], float]:
    """Find the left edge of each page's columns. A column that begins further in than is usual takes the usual edge."""
    own_edges: dict[tuple[int, int], float] = {}
    for line in lines:
        own_edges[line.page, line.column] = min(own_edges.get((line.page, line.column), line.start), line.start)
    edges = {}
    for (number, column), edge in own_edges.items():
        column_edges = [
            other for (page, place), other in own_edges.items() if place == column and page % 2 == number % 2
        ]
        if len(column_edges) < _ENOUGH_PAGES:
            column_edges = [other for (_, place), other in own_edges.items() if place == column]
        usual = _most_common(round(other) for other in column_edges)
        edges[number, column] = usual if usual + _INDENTED < edge < usual + _FARTHEST else edge
    return edges


def _make_line(cells: Cells, edge: float, body: float, usual_gap: float, *, is_row: bool) -> Line:
    ink = [glyph for part in cells.parts for glyph in part]
    box = Box(cells.page, ink[0].x0, cells.baseline - 0.3 * body, max(g.x1 for g in ink), cells.baseline + 0.9 * body)
    if is_row:
        parts = [cells.find_glyphs(place) for place in range(len(cells.parts))]
        text = f"\n{CELL_GAP.join(render_glyphs(part, body, usual_gap) for part in parts)}\n"
    else:
        text = render_glyphs(cells.glyphs, body, usual_gap)
    guessed = sum(glyph.guessed for glyph in ink)
    return Line(text, box, cells.baseline, cells.column, cells.start - edge, guessed)


def _find_leading(lines: Sequence[Line]) -> float:
    steps = [
        round(previous.baseline - following.baseline, 1)
        for previous, following in pairwise(lines)
        if previous.box.page == following.box.page
        and previous.column == following.column
        and previous.baseline > following.baseline
    ]
    return _most_common(steps) if steps else 0.0


def _find_single_drawings(pages: Sequence[PageText]) -> tuple[Box, ...]:
    places = Counter(
        (round(box.x0), round(box.bottom), round(box.x1), round(box.top)) for page in pages for box in page.drawings
    )
    return tuple(
        box
        for page in pages
        for box in page.drawings
        if places[round(box.x0), round(box.bottom), round(box.x1), round(box.top)] == 1
    )


def _most_common(values: Iterable[float]) -> float:
    """Return the value that stands most often, the smallest of several."""
    return min(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))[0]
