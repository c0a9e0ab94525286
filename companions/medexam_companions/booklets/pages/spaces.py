"""Where a line's letters stand apart: gaps that are spaces, judged against the gaps between letters.

Letters that are set wide by tracking or justification have gaps everywhere; a space is a gap beyond those.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from medexam_companions.booklets.pages.glyphs import Glyph

SPACE = 0.14
"""Of the type's size: how far a gap must exceed those between letters to be a space."""

_ENOUGH = 8
"""Gaps of a line that show how far its letters stand apart; fewer leave it to the booklet."""
_SHARE = 0.35
"""Share of a line's gaps that are surely none between words: words have three letters and more on average."""
_LOOSEST = 0.25
"""Of the size: the farthest that one line's letters may stand apart beyond the booklet's usual."""
_TOUCHING = -0.1
"""Of the size: letters that overlap more, as accents do, tell nothing."""


def measure_gap(previous: Glyph, following: Glyph) -> float:
    """Measure the gap between two glyphs, in the size of the larger."""
    return (following.x0 - previous.x1) / (max(previous.size, following.size) or 1.0)


def find_usual_gap(rows: Iterable[Sequence[Glyph]]) -> float:
    """Find how far a booklet's letters usually stand apart, in the type's size, by rows in the order of reading."""
    return max(_find_lower(gap for row in rows for gap in _find_gaps(row)), 0.0)


def find_line_gap(ordered: Sequence[Glyph], usual: float) -> float:
    """Find how far the letters of one line stand apart; `usual` is the booklet's."""
    gaps = list(_find_gaps(ordered))
    if len(gaps) < _ENOUGH:
        return usual
    return min(max(_find_lower(gaps), 0.0), usual + _LOOSEST)


def _find_gaps(ordered: Sequence[Glyph]) -> Iterable[float]:
    for previous, following in pairwise(ordered):
        # Signs and digits may all stand apart, as in `A + G = T + C`; the letters of words do not.
        if (
            previous.text.isalpha()
            and following.text.isalpha()
            and (gap := measure_gap(previous, following)) > _TOUCHING
        ):
            yield gap


def _find_lower(gaps: Iterable[float]) -> float:
    ranked = sorted(gaps)
    return ranked[int(_SHARE * len(ranked))] if ranked else 0.0
