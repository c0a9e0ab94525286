"""Accents that are printed as glyphs of their own, as TeX does, joined with the letters under them."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from medexam_companions.booklets.pages.glyphs import Glyph

_COMBINING = {
    "\xb4": "\u0301",
    "\xa8": "\u0308",
    "`": "\u0300",
    "\u02dc": "\u0303",
    "\u02c6": "\u0302",
    "\xb8": "\u0327",
}
"""Accents with a place of their own, and those that combine with a letter."""
_DOTLESS = {"\u0131": "i", "\u0237": "j"}
_ASIDE = 0.2
"""Of the size: how far the middles of an accent and its letter may lie apart."""
_LOWERED = 0.1
_RAISED = 0.5
"""Of the size: how far below and above the letter's line an accent may be set; over capitals it is raised."""


def join_accents(glyphs: Sequence[Glyph]) -> tuple[Glyph, ...]:
    """Join each accent of `glyphs` that stands over or under a letter to that letter."""
    accents = [glyph for glyph in glyphs if _find_mark(glyph)]
    if not accents:
        return tuple(glyphs)
    letters = sorted((glyph for glyph in glyphs if not _find_mark(glyph)), key=_middle)
    middles = [_middle(glyph) for glyph in letters]
    joined: dict[Glyph, Glyph] = {}
    used = set()
    for accent in accents:
        aside = _ASIDE * accent.size
        near = letters[bisect_left(middles, _middle(accent) - aside) : bisect_right(middles, _middle(accent) + aside)]
        under = [letter for letter in near if -_LOWERED <= (accent.baseline - letter.baseline) / accent.size <= _RAISED]
        for letter in sorted(under, key=lambda letter: abs(_middle(letter) - _middle(accent))):
            text = unicodedata.normalize("NFC", _DOTLESS.get(letter.text, letter.text) + _find_mark(accent))
            if len(text) == 1:
                joined[letter] = replace(letter, text=text)
                used.add(accent)
                break
    return tuple(joined.get(glyph, glyph) for glyph in glyphs if glyph not in used)


def _find_mark(glyph: Glyph) -> str:
    """Find the combining form of an accent; empty for what is none."""
    return glyph.text if unicodedata.category(glyph.text) == "Mn" else _COMBINING.get(glyph.text, "")


def _middle(glyph: Glyph) -> float:
    return (glyph.x0 + glyph.x1) / 2
