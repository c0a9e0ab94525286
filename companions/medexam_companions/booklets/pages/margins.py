"""Headers, footers and page numbers: what repeats at the edges of pages, and numbers that stand there alone."""

import re
from collections import defaultdict
from collections.abc import Sequence

from medexam_companions.booklets.pages.glyphs import PageText
from medexam_companions.booklets.pages.rows import DASHES, GlyphRow, render_glyphs

MARGIN_SHARE = 0.09
"""The part of a page's height, above and below, where headers and footers stand."""
REPEATED = 0.4
"""Share of the pages with text, two at least, on which a line of the margin stands that is a header or footer."""

_DEEPEST = 0.2
"""The part of a page's height where a line that stands at the same place of several pages is a header or footer."""
_ALONE = 1.8
"""Of the body's size: how far from all other lines a bare number is a page's."""
_PAGE_NUMBER = re.compile(
    rf"^([{DASHES}]\s*\d{{1,3}}\s*[{DASHES}]|p[áa]g(ina|\.)?\s*\d{{1,3}}(\s*(/|de)\s*\d{{1,3}})?)$", re.I
)
"""Page numbers that are no text wherever they stand alone; bare ones must repeat or stand apart."""
_LABEL = re.compile(r"^\d{1,3}\s*[.)]")

Place = tuple[int, float]
"""A page's number and a line's baseline."""


def find_page_margins(
    pages: Sequence[PageText], rows: dict[int, list[GlyphRow]], body: float, usual_gap: float
) -> dict[Place, str]:
    """Find page and baseline of each header and footer, with its text, `#` for its digits."""
    repeated: defaultdict[tuple[str, int | None], list[Place]] = defaultdict(list)
    margins: dict[Place, str] = {}
    for page in pages:
        for row in rows[page.number]:
            if _DEEPEST < row.baseline / page.height < 1 - _DEEPEST:
                continue
            text = render_glyphs(row.glyphs, body, usual_gap)
            pattern, place = re.sub(r"\d+", "#", text), (page.number, row.baseline)
            inside = is_inside(row, page.height)
            others = (other.baseline for other in rows[page.number] if other is not row)
            is_alone = all(abs(other - row.baseline) > _ALONE * body for other in others)
            if not inside and (_PAGE_NUMBER.match(text) or (text.isdigit() and is_alone)):
                margins[place] = pattern
            elif not _LABEL.match(text):
                repeated[pattern, round(row.baseline) if inside else None].append(place)
    with_text = sum(bool(page) for page in rows.values())
    for (pattern, level), places in repeated.items():
        fewest = 2.0 if level is None else 3.0
        if len({number for number, _ in places}) >= max(fewest, REPEATED * with_text):
            margins |= dict.fromkeys(places, pattern)
    return margins


def is_inside(row: GlyphRow, height: float) -> bool:
    """Return whether a row stands where no header or footer usually does."""
    return MARGIN_SHARE * height < row.baseline < (1 - MARGIN_SHARE) * height
