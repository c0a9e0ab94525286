"""Rows to columns: where a page's columns part, by what few rows cross, and the order in which its lines are read."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import median

from medexam_companions.booklets.pages.glyphs import Glyph
from medexam_companions.booklets.pages.rows import GlyphRow
from medexam_companions.booklets.pages.tables import LABEL

_CENTRE = (0.3, 0.7)
"""Shares of the text's width between which the gap between two columns is looked for."""
_GUTTER = 6.0
"""Points that two columns are apart at least."""
_CROSSING = (0.0, 0.03, 0.1, 0.25)
"""Shares of a page's rows that may cross the gap between its columns, such as titles and tables; the least wins."""
_SIDE_SHARE = 0.15
"""Share of a page's rows that a column holds at least where rows cross the gap; where none does, two are enough."""
_LABEL_GLYPHS = 5
"""What stands left of a gap with fewer glyphs is a number in the margin of the second column, not the first."""
_FEW_ROWS = 12
"""Rows under which a page's columns are taken from the other pages, as they are where its own do not show."""
_WORD_GAP = 0.12
"""Of the type's size: gaps of a row over this are between words."""
_WIDER = 1.6
"""How much wider the gap between two columns is than those between the words of the same rows."""
_ENOUGH_LABELS = 4
"""Labels behind text that show what stands there."""
_ENOUGH_BOTH = 3
"""Rows with text on both sides of a gap that show how wide it is."""


def find_gutters(rows: dict[int, list[GlyphRow]], widths: Mapping[int, float]) -> dict[int, float | None]:
    """Find the x just before each page's second column; None for a page of one column. `widths` are the pages'."""
    own = {number: _find_gutter(page, widths[number]) for number, page in rows.items() if len(page) >= _FEW_ROWS}
    places = [gutter for gutter in own.values() if gutter is not None]
    if _parts_options(rows, own):
        return dict.fromkeys(rows)
    if not places or len(places) * 2 < len(own):
        return {number: own.get(number) for number in rows}
    split = [rows[number] for number, gutter in own.items() if gutter is not None]
    # A column with little text looks wider than it is: of equally good places the first leaves the numbers whole.
    usual = min(sorted(places), key=lambda place: sum(_count_crossing(page, place) for page in split))
    return {number: _choose_gutter(page, own.get(number), usual) for number, page in rows.items()}


def _parts_options(rows: dict[int, list[GlyphRow]], gutters: Mapping[int, float | None]) -> bool:
    """Return whether the supposed second columns are options beside others. A column of questions has first options
    too.
    """
    labels = [
        label.group(1).lower()
        for number, gutter in gutters.items()
        for row in rows[number]
        if gutter is not None
        and (label := LABEL.match("".join(glyph.text for glyph in row.ink if glyph.x0 > gutter)[:6]))
    ]
    return len(labels) >= _ENOUGH_LABELS and not {"1", "a"} & set(labels)


def _choose_gutter(rows: list[GlyphRow], own: float | None, usual: float) -> float | None:
    """Choose the usual gutter where next to nothing crosses it, else the page's own; with neither, the usual within
    reason.
    """
    crossing = _count_crossing(rows, usual) / max(len(rows), 1)
    if crossing <= _CROSSING[1]:
        return usual
    return own or (usual if crossing <= _CROSSING[-1] else None)


def _count_crossing(rows: list[GlyphRow], gutter: float) -> int:
    return sum(any(glyph.x0 < gutter < glyph.x1 for glyph in row.ink) for row in rows)


def _find_gutter(rows: list[GlyphRow], width: float) -> float | None:
    left_edge = min(glyph.x0 for row in rows for glyph in row.ink)
    # A second column of a few short lines ends before the text's right edge, which is as far in as the left one.
    right_edge = max(width - left_edge, *(glyph.x1 for row in rows for glyph in row.ink))
    covered = [0] * (int(right_edge - left_edge) + 2)
    for row in rows:
        touched = set()
        for glyph in row.ink:
            touched |= set(range(int(glyph.x0 - left_edge), int(glyph.x1 - left_edge) + 1))
        for place in touched:
            covered[place] += 1
    for crossing in _CROSSING:
        fewest = _SIDE_SHARE * len(rows) if crossing else 2
        free = _find_free(covered, crossing * len(rows))
        edges = [left_edge + end - 1.0 for _, end in sorted(free, key=lambda gap: gap[0] - gap[1])]
        for edge in edges:
            if _has_two_sides(rows, edge, fewest) and _is_wide(rows, edge):
                return _skip_labels(rows, edge, edges)
    return None


def _skip_labels(rows: list[GlyphRow], gutter: float, edges: list[float]) -> float:
    """Return the first of several gaps between which only numbers stand: those of the second column's paragraphs."""
    for edge in sorted(edges):
        between = [sum(edge < glyph.x0 < gutter for glyph in row.ink) for row in rows]
        if edge < gutter and 0 < max(between) <= _LABEL_GLYPHS:
            return edge
    return gutter


def _is_wide(rows: list[GlyphRow], gutter: float) -> bool:
    """Return whether a gap is wider than those between words, unlike one that words happen to leave free."""
    ratios = [ratio for row in rows if (ratio := _compare_gaps(row, gutter)) is not None]
    return len(ratios) < _ENOUGH_BOTH or median(ratios) > _WIDER


def _compare_gaps(row: GlyphRow, gutter: float) -> float | None:
    """Return how much wider the gap at `gutter` is than usual between words; None if the row does not tell."""
    ordered = sorted(row.ink, key=lambda glyph: glyph.x0)
    gutter_gap, word_gaps = 0.0, []
    for previous, following in pairwise(ordered):
        if previous.x0 < gutter < following.x0:
            gutter_gap = following.x0 - previous.x1
        elif following.x0 - previous.x1 > _WORD_GAP * previous.size:
            word_gaps.append(following.x0 - previous.x1)
    return gutter_gap / median(word_gaps) if gutter_gap > 0 and word_gaps else None


def _has_two_sides(rows: list[GlyphRow], gutter: float, fewest: float) -> bool:
    """Return whether enough rows that do not cross the gutter stand on each side of it."""
    apart = [row for row in rows if not any(glyph.x0 < gutter < glyph.x1 for glyph in row.ink)]
    on_left = sum(sum(glyph.x1 <= gutter for glyph in row.ink) >= _LABEL_GLYPHS for row in apart)
    on_right = sum(any(glyph.x0 >= gutter for glyph in row.ink) for row in apart)
    return min(on_left, on_right) >= fewest


def _find_free(covered: list[int], most: float) -> Iterator[tuple[int, int]]:
    """Yield the first and last place of each gap near the centre that at most `most` rows cross."""
    start: int | None = None
    for place in range(int(_CENTRE[0] * len(covered)), int(_CENTRE[1] * len(covered)) + 2):
        if place < len(covered) and place <= _CENTRE[1] * len(covered) and covered[place] <= most:
            start = place if start is None else start
        elif start is not None:
            if place - start > _GUTTER:
                yield start, place - 1
            start = None


def order_rows(rows: list[GlyphRow], gutter: float | None) -> list[tuple[int, GlyphRow, tuple[Glyph, ...]]]:
    """List column, row and glyphs of each line. Between two lines across the page stand the left column and then the
    right.
    """
    if gutter is None:
        return [(0, row, row.glyphs) for row in rows]
    order: list[tuple[int, GlyphRow, tuple[Glyph, ...]]] = []
    left_lines: list[tuple[int, GlyphRow, tuple[Glyph, ...]]] = []
    right_lines: list[tuple[int, GlyphRow, tuple[Glyph, ...]]] = []
    for row in rows:
        if any(glyph.x0 < gutter < glyph.x1 for glyph in row.ink):
            order += [*left_lines, *right_lines, (0, row, row.glyphs)]
            left_lines, right_lines = [], []
            continue
        for column, side in ((0, left_lines), (1, right_lines)):
            glyphs = tuple(glyph for glyph in row.glyphs if (glyph.x0 > gutter) == bool(column))
            if any(not glyph.text.isspace() for glyph in glyphs):
                side.append((column, row, glyphs))
    return [*order, *left_lines, *right_lines]
