"""Options that stand beside each other: in rows (1 2 / 3 4) or in columns (1 3 / 2 4), also uneven (1 4 / 2 5 / 3).

An option may run over several lines of its column. What stands there is put in the order of the labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from statistics import median

from medexam_companions.booklets.pages.glyphs import Glyph
from medexam_companions.booklets.pages.tables import LABEL, Cells

_ALIGNED = 4.0
"""Points by which what begins alike in one column may be out of line."""
_LINE = 1.6
"""Of the size: the distance over which a line belongs to another paragraph."""
_GAP = 0.15
"""Of the size: gaps over this are between words."""
_WIDER = 1.3
"""How much wider than those of its line the gap before a label is."""

Column = tuple[float, float]
"""Where the labels of a column begin, and where the text behind them does."""


@dataclass(slots=True)
class _Block:
    """Lines of options beside each other, as far as they were read."""

    columns: Sequence[Column]
    options: list[list[tuple[int, list[Cells]]]]
    """Of each column: a label's number, or its letter's code, with the option's lines."""
    length: int = 0
    ordered_lines: list[Cells] = field(default_factory=list)
    """The lines in the order of the options, as they were when the labels last counted on."""
    ordered_length: int = 0

    def take(self, line: Cells) -> bool:
        """Add a line, if it is one of this block."""
        parts = list(self._cut(line))
        if len(parts) == 1 and not self._continues(parts[0]):
            return False
        for part in parts:
            begins, label = part.parts[0][0].x0, _read_label(part)
            place = max(
                (index for index, (start, _) in enumerate(self.columns) if begins >= start - _ALIGNED), default=None
            )
            if place is None:
                return False
            if label is not None and begins <= self.columns[place][0] + _ALIGNED:
                self.options[place].append((label, [part]))
            elif self.options[place]:
                self.options[place][-1][1].append(part)
            else:
                return False
        self.length += 1
        downward = all(column == sorted(column, key=itemgetter(0)) for column in self.options)
        ordered_options = sorted((option for column in self.options for option in column), key=itemgetter(0))
        if downward and all(following == number + 1 for (number, _), (following, _) in pairwise(ordered_options)):
            self.ordered_lines, self.ordered_length = (
                [cells for _, lines in ordered_options for cells in lines],
                self.length,
            )
        return True

    def _continues(self, part: Cells) -> bool:
        """Return whether a line of one cell belongs here: a further column's, an option that is missing, or more of
        one.
        """
        label = _read_label(part)
        labels = {number for column in self.options for number, _ in column}
        further = part.parts[0][0].x0 >= self.columns[1][0] - _ALIGNED
        return label is None or further or (label not in labels and label < max(labels, default=0))

    def _cut(self, line: Cells) -> Iterator[Cells]:
        """Yield the cells of a line, each a line, also where less than a cell's gap stands before a column."""
        for part in line.parts:
            start = 0
            for edges in self.columns[1:]:
                for place in range(start + 1, len(part) if part[start].x0 < edges[0] - _ALIGNED else 0):
                    gap, size = part[place].x0 - part[place - 1].x1, part[place].size
                    if gap > _GAP * size and any(abs(part[place].x0 - edge) <= _ALIGNED for edge in edges):
                        yield self._make_line(line, part[start:place])
                        start = place
                        break
            yield self._make_line(line, part[start:])

    def _make_line(self, line: Cells, part: tuple[Glyph, ...]) -> Cells:
        single = replace(line, parts=(part,))
        return replace(single, glyphs=single.find_glyphs(0), start=self.columns[0][0])


def separate_options(lines: Sequence[Cells]) -> Iterator[Cells]:
    """Put options in `lines` that stand beside each other one after the other, in the order of their labels."""
    place = 0
    while place < len(lines):
        block = _read_block(lines, place)
        yield from block.ordered_lines if block else [lines[place]]
        place += block.ordered_length if block else 1


def _read_block(lines: Sequence[Cells], place: int) -> _Block | None:
    """Read the options that begin beside each other in the line at `place`; None if their labels do not count on.

    A column whose labels stand little more than a word's gap behind the text before them is one if two lines have it,
    and if the first option is among them: texts may end alike in numbers.
    """
    first = lines[place]
    wide = [(part[0].x0, _find_text(part, 0)) for part in first.parts]
    if len(wide) > 1 and all(first.labels) and (block := _read_lines(lines, place, wide)).ordered_lines:
        return block
    begins = [glyph for part in first.parts for glyph in part] if first.labels[0] in ("1", "a") else []
    if len(columns := list(_find_columns(begins))) < 2:
        return None
    block = _read_lines(lines, place, columns)
    alone = [column for column, options in zip(columns, block.options, strict=True) if len(options) < 2]
    return block if block.ordered_lines and not set(alone) - set(wide) else None


def _read_lines(lines: Sequence[Cells], place: int, columns: Sequence[Column]) -> _Block:
    block = _Block(columns, [[] for _ in columns])
    first = before = lines[place]
    for line in lines[place:]:
        near = before.baseline - line.baseline <= _LINE * first.parts[0][0].size
        if (line.page, line.column) != (first.page, first.column) or not near or not block.take(line):
            break
        before = line
    # Texts that are numbers, as in `1. 2.` over `2. 4.`, look like labels until a label comes again.
    following = lines[place + block.ordered_length : place + block.ordered_length + 1]
    stated = {number for options in block.options for number, _ in options[: block.ordered_length]}
    if block.ordered_length == 1 and any(_read_label(line) in stated for line in following):
        block.ordered_lines, block.ordered_length = [], 0
    return block


def _find_columns(ink: Sequence[Glyph]) -> Iterator[Column]:
    """Find where a line has labels with a text behind them."""
    gaps = [following.x0 - previous.x1 for previous, following in pairwise(ink)]
    usual = median([gap for gap, glyph in zip(gaps, ink, strict=False) if gap > _GAP * glyph.size] or [0.0])
    for place, glyph in enumerate(ink):
        apart = not place or gaps[place - 1] > _WIDER * usual
        if apart and glyph.x0 < (text := _find_text(ink, place)):
            yield glyph.x0, text


def _find_text(ink: Sequence[Glyph], place: int) -> float:
    """Find where the text behind the label at `place` begins; there, if there is no label or no text."""
    label = LABEL.match("".join(glyph.text for glyph in ink[place : place + 6]))
    after = place + (label.end() if label else 0)
    return ink[after if after < len(ink) else place].x0


def _read_label(part: Cells) -> int | None:
    """Read the number of a cell's label, or the code of its letter; None for a cell without."""
    label = part.labels[0]
    return None if not label else int(label) if label.isdigit() else ord(label)
