"""Glyphs to rows: what stands on one baseline, as text. Raised and lowered signs stand in their place."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from medexam_companions.booklets.pages.glyphs import Glyph
from medexam_companions.booklets.pages.spaces import SPACE, find_line_gap, measure_gap

SMALL = 0.8
"""A glyph under this share of the body's size is a super- or subscript."""
DASHES = "-\u2013\u2014\u2212"
"""Hyphen, dashes and minus."""

_SAME_LINE = 0.3
"""Of the body's size: how far two baselines of one line may lie apart."""
_SAME_PLACE = 0.06
"""Of the body's size: the same letter printed twice nearer than this is one in bold."""


@dataclass(frozen=True, slots=True)
class GlyphRow:
    """Glyphs on one baseline, across the page."""

    baseline: float
    glyphs: tuple[Glyph, ...]

    @property
    def ink(self) -> list[Glyph]:
        """Its glyphs without the spaces."""
        return [glyph for glyph in self.glyphs if not glyph.text.isspace()]


def find_rows(glyphs: Sequence[Glyph], body: float) -> list[GlyphRow]:
    """Find rows from the top down; super- and subscripts stand in the row of what they are set to."""
    full = sorted((glyph for glyph in glyphs if glyph.size >= SMALL * body), key=lambda glyph: -glyph.baseline)
    rows: list[list[Glyph]] = []
    for glyph in full:
        if rows and rows[-1][0].baseline - glyph.baseline <= _SAME_LINE * body:
            rows[-1].append(glyph)
        else:
            rows.append([glyph])
    alone: list[Glyph] = []
    for glyph in glyphs:
        if glyph.size < SMALL * body:
            home = _find_home(glyph, rows, body)
            (alone if home is None else home).append(glyph)
    for glyph in sorted(alone, key=lambda glyph: -glyph.baseline):
        near = next((row for row in rows if abs(row[0].baseline - glyph.baseline) <= _SAME_LINE * body), None)
        if near is None:
            rows.append([glyph])
        else:
            near.append(glyph)
    glyph_rows = []
    for row in rows:
        levels = [glyph.baseline for glyph in row if glyph.size >= SMALL * body] or [glyph.baseline for glyph in row]
        glyph_rows.append(GlyphRow(median(levels), tuple(row)))
    return sorted((row for row in glyph_rows if row.ink), key=lambda row: -row.baseline)


def render_glyphs(glyphs: Sequence[Glyph], body: float, usual_gap: float = 0.0) -> str:
    """Render the text of one line: a space for a gap, and `^` where a raised digit would run into a number.

    `usual_gap` is how far the booklet's letters stand apart, in the type's size.
    """
    parts: list[str] = []
    last: Glyph | None = None
    level = median([glyph.baseline for glyph in glyphs if glyph.size >= SMALL * body] or [0.0])
    ordered = sorted(glyphs, key=lambda glyph: glyph.x0)
    space = find_line_gap(ordered, usual_gap) + SPACE
    for place, glyph in enumerate(ordered):
        if last is not None:
            if glyph.text == last.text and glyph.x0 - last.x0 < _SAME_PLACE * body and not glyph.text.isspace():
                continue
            if measure_gap(last, glyph) > space:
                parts.append(" ")
            elif last.text.isdigit() and _is_raised(glyph, level, body) and not _is_raised(last, level, body):
                following = ordered[place + 1] if place + 1 < len(ordered) else None
                parts.append("^" if _is_exponent(glyph, following, level, body) else "")
        parts.append(glyph.text)
        last = glyph
    return unicodedata.normalize("NFC", re.sub(r"\s+", " ", "".join(parts)).strip())


def _is_raised(glyph: Glyph, level: float, body: float) -> bool:
    return glyph.size < SMALL * body and glyph.baseline > level + 0.1 * body


def _is_exponent(glyph: Glyph, following: Glyph | None, level: float, body: float) -> bool:
    """Return whether a raised glyph after a digit begins a number, as in 10^-6 and unlike the charge in CD4+."""
    if glyph.text.isdigit():
        return True
    return (
        glyph.text in f"{DASHES}+"
        and following is not None
        and _is_raised(following, level, body)
        and (following.text.isdigit())
    )


def _find_home(small: Glyph, rows: list[list[Glyph]], body: float) -> list[Glyph] | None:
    """Find the row that a super- or subscript belongs to: one that it touches, none when it stands alone."""
    best: tuple[float, float, list[Glyph]] | None = None
    for row in rows:
        rise = small.baseline - row[0].baseline
        if -0.4 * body <= rise <= 0.7 * body:
            reach = min(
                (max(small.x0 - glyph.x1, glyph.x0 - small.x1, 0.0) for glyph in row if not glyph.text.isspace()),
                default=body,
            )
            if reach < body and (best is None or (reach, abs(rise)) < best[:2]):
                best = (reach, abs(rise), row)
    return best[2] if best else None
