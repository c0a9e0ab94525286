"""Rows of tables: lines whose cells stand apart, and under or over cells of the next line.

One line with wide gaps is no table; justified lines have them too. What begins with a number and a full stop is a
question or an option.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from medexam_companions.booklets.pages.glyphs import Glyph

CELL_GAP = "   "
"""What stands between the cells of a row in the text."""

_APART = 1.0
"""Of the size: the least gap between two cells."""
_WIDER = 2.2
"""How much wider it is than the gaps between the words of its row."""
_WORD_GAP = 0.12
"""Of the size: gaps over this are between words."""
_EVEN = 0.2
"""Of the size: gaps that differ less are those of a justified line."""
_ALIGNED = 3.0
"""Points by which cells of one column may be out of line."""
_FARTHEST = 3.0
"""Of the size: the distance of two rows of one table."""
_ALONE = re.compile(r"^\(?(\d{1,3}|[a-iA-I])[.)][-\u2013]?$")
LABEL = re.compile(r"^\(?(\d{1,3}|[a-iA-I])\s?[.)]")


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one line, from the left."""

    page: int
    column: int
    baseline: float
    parts: tuple[tuple[Glyph, ...], ...]
    """Without spaces."""
    glyphs: tuple[Glyph, ...]
    """All of the line, spaces too."""
    start: float
    """The x at which it is taken to begin."""

    def find_glyphs(self, place: int) -> tuple[Glyph, ...]:
        """Find the glyphs of one cell, spaces too."""
        part = self.parts[place]
        return tuple(glyph for glyph in self.glyphs if part[0].x0 <= glyph.x0 <= part[-1].x0)

    @property
    def labels(self) -> tuple[str, ...]:
        """The number or letter with which each cell begins; empty for a cell without."""
        beginnings = ["".join(glyph.text for glyph in part[:6]) for part in self.parts]
        return tuple(match.group(1).lower() if (match := LABEL.match(text)) else "" for text in beginnings)


def split_cells(page: int, column: int, baseline: float, glyphs: Sequence[Glyph]) -> Cells:
    """Split one line into cells; one if nothing in it stands apart."""
    ink = sorted((glyph for glyph in glyphs if not glyph.text.isspace()), key=lambda glyph: glyph.x0)
    gaps = [following.x0 - previous.x1 for previous, following in pairwise(ink)]
    sizes = [max(previous.size, following.size) for previous, following in pairwise(ink)]
    words = [gap for gap, size in zip(gaps, sizes, strict=True) if gap > _WORD_GAP * size]
    within = [gap for gap in words if gap < _APART * ink[0].size]
    usual = median(within) if within else 0.0
    if len(words) > 1 and max(words) - min(words) < _EVEN * ink[0].size:
        gaps = [0.0] * len(gaps)
    parts: list[tuple[Glyph, ...]] = []
    start = 0
    for place, (gap, size) in enumerate(zip(gaps, sizes, strict=True), start=1):
        if gap >= max(_APART * size, _WIDER * usual):
            parts.append(tuple(ink[start:place]))
            start = place
    parts.append(tuple(ink[start:]))
    return Cells(page, column, baseline, tuple(_join_labels(parts)), tuple(glyphs), ink[0].x0)


def _join_labels(parts: Sequence[tuple[Glyph, ...]]) -> Iterator[tuple[Glyph, ...]]:
    """Join labels in `parts` that stand alone before their text to it."""
    before: tuple[Glyph, ...] = ()
    for part in parts:
        if _ALONE.match("".join(glyph.text for glyph in part)):
            yield from [before] if before else []
            before = part
        else:
            yield (*before, *part)
            before = ()
    if before:
        yield before


def find_tables(lines: Sequence[Cells]) -> frozenset[int]:
    """Find the places in `lines` of rows of tables."""
    ends: dict[tuple[int, int], float] = {}
    for line in lines:
        ends[line.page, line.column] = max(ends.get((line.page, line.column), 0.0), line.parts[-1][-1].x1)
    places: set[int] = set()
    for place, (upper, lower) in enumerate(pairwise(lines)):
        if _fit(upper, lower, ends[upper.page, upper.column]):
            places |= {place, place + 1}
    return frozenset(places)


def _fit(line: Cells, other: Cells, end: float) -> bool:
    """Return whether two lines are rows of one table: a cell after the first stands in line with one of the other's."""
    if (line.page, line.column) != (other.page, other.column) or min(len(line.parts), len(other.parts)) < 2:
        return False
    if line.labels[0] or other.labels[0] or not 0 < line.baseline - other.baseline <= _FARTHEST * line.parts[0][0].size:
        return False
    return any(_in_line(upper, lower, end) for upper in line.parts[1:] for lower in other.parts[1:])


def _in_line(upper: Sequence[Glyph], lower: Sequence[Glyph], end: float) -> bool:
    """Return whether two cells begin, end or are centred alike; lines that fill their column all end at its `end`."""
    left_shift, right_shift = upper[0].x0 - lower[0].x0, upper[-1].x1 - lower[-1].x1
    if end - upper[-1].x1 <= _ALIGNED:
        return abs(left_shift) <= _ALIGNED
    return min(abs(left_shift), abs(right_shift), abs(left_shift + right_shift) / 2) <= _ALIGNED
