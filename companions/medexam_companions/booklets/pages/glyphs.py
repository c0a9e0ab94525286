"""Reads what is printed on a page as glyphs with places, from the geometry that is really drawn.

It knows nothing of columns, lines or questions. A font's size alone says little: many producers set it to 1 and scale
the type by the text's matrix.
"""

import ctypes
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from medexam_companions.booklets.pages import pdfium
from medexam_companions.booklets.pages.characters import Font, clean_character, find_font
from medexam_companions.booklets.pages.frames import Box, Frame

_UPRIGHT = 6.0
"""Degrees that the characters of a line may be turned."""
_OUTSIDE = 2.0
"""Points that a glyph may begin outside its page."""
_OVERHANG = 0.3
"""Of the size: how far ink may reach beyond a glyph's advance before the advance is not believed."""
_BEARING = 0.45
"""Of the size: how far an advance may reach beyond the ink before it is not believed."""
_NO_INK = 0.02
"""Of the size: a box smaller than this in both directions prints nothing."""
_FIRST_HALVES, _SECOND_HALVES = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
"""Of the surrogate pairs that stand for characters beyond U+FFFF."""


@dataclass(frozen=True, slots=True)
class Glyph:
    """One printed character."""

    text: str
    x0: float
    """Where its place on the line begins."""
    x1: float
    """Where its place ends, by its advance: in evenly set text the next glyph begins there."""
    baseline: float
    size: float
    """Of the type as it is drawn, in points; the superscripts of 10-point text have about 6.5."""
    guessed: bool = False
    """Whether the PDF does not say which character it is, so that its code was taken for one."""


@dataclass(frozen=True, slots=True)
class PageText:
    """What one page holds."""

    number: int
    """From 1."""
    width: float
    height: float
    glyphs: tuple[Glyph, ...]
    drawings: tuple[Box, ...]
    """Pictures and figures made of lines, each whole."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A character as the library gives it, in the coordinates of the page's content."""

    place: int
    """Among the characters of the page, one beyond U+FFFF counting once."""
    text: str
    guessed: bool
    size: float
    angle: float
    """Degrees counter-clockwise."""
    origin: tuple[float, float]
    ink: tuple[float, float, float, float]
    """Left, bottom, right and top."""
    advance: tuple[float, float, float, float]
    """The box from its origin to that of the next glyph, over the font's whole height."""


def read_glyphs(page: Any, text: Any, number: int) -> tuple[Frame, tuple[Glyph, ...]]:
    """Read how a page is turned to be read, and its upright characters in the order of the file.

    Spaces that the library guessed are left out, and so is what stands outside the page.
    """
    characters = [character for character in _read_characters(text) if character.text]
    shown = page.get_rotation()
    turns = Counter(round(one.angle / 90) % 4 * 90 for one in characters if not one.text.isspace())
    # The turn that makes most text upright; without text the one in which the page is shown.
    turn = max(turns, key=lambda turn: (turns[turn], turn == shown), default=shown % 360)
    frame = Frame.turned(number, page.get_bbox(), turn)
    upright = (character for character in characters if abs((character.angle + 180 - turn) % 360 - 180) <= _UPRIGHT)
    glyphs: list[Glyph] = []
    groups: list[list[_Drawn]] = []
    for character in upright:
        if groups and character.place == groups[-1][-1].place + 1 and _is_same(character, groups[-1][0]):
            groups[-1].append(character)  # one more letter of a ligature
        else:
            groups.append([character])
    for pieces in groups:
        glyph = _make_glyph(pieces, frame)
        if -_OUTSIDE <= glyph.x0 <= frame.width + _OUTSIDE and -_OUTSIDE <= glyph.baseline <= frame.height + _OUTSIDE:
            glyphs += _share(glyph, "".join(piece.text for piece in pieces))
    return frame, tuple(glyphs)


def _read_characters(text: Any) -> Iterator[_Drawn]:
    fonts: dict[int, Font] = {}
    left, right, bottom, top, x, y = (ctypes.c_double() for _ in range(6))
    matrix, loose = pdfium.FS_MATRIX(), pdfium.FS_RECTF()
    halves = 0
    for place in range(text.count_chars()):
        code = pdfium.FPDFText_GetUnicode(text, place)
        if code in _SECOND_HALVES and place and pdfium.FPDFText_GetUnicode(text, place - 1) in _FIRST_HALVES:
            halves += 1
            continue
        if pdfium.FPDFText_IsGenerated(text, place) == 1:
            continue
        pdfium.FPDFText_GetCharBox(text, place, left, right, bottom, top)
        pdfium.FPDFText_GetCharOrigin(text, place, x, y)
        pdfium.FPDFText_GetMatrix(text, place, matrix)
        pdfium.FPDFText_GetLooseCharBox(text, place, loose)
        font_size = pdfium.FPDFText_GetFontSize(text, place)
        size = abs(font_size) * math.hypot(matrix.c, matrix.d)
        sign = -1.0 if font_size < 0 else 1.0
        if code in _FIRST_HALVES and (second := pdfium.FPDFText_GetUnicode(text, place + 1)) in _SECOND_HALVES:
            # The library gives what its PDF tells in UTF-16, half by half.
            code = 0x10000 + ((code - _FIRST_HALVES.start) << 10) + second - _SECOND_HALVES.start
        guessed = pdfium.FPDFText_HasUnicodeMapError(text, place) == 1
        has_ink = max(right.value - left.value, top.value - bottom.value) > _NO_INK * size
        yield _Drawn(
            place=place - halves,
            text=clean_character(code, partial(find_font, text, fonts, place), guessed=guessed, has_ink=has_ink),
            guessed=guessed,
            size=size,
            angle=math.degrees(math.atan2(sign * matrix.b, sign * matrix.a)),
            origin=(x.value, y.value),
            ink=(left.value, bottom.value, right.value, top.value),
            advance=(loose.left, loose.bottom, loose.right, loose.top),
        )


def _is_same(character: _Drawn, other: _Drawn) -> bool:
    """Return whether two letters are of one glyph: the library divides its ink evenly, or gives it whole to each."""
    (left, bottom, right, top), (x0, y0, x1, y1) = character.ink, other.ink
    wide, high = (right - left) - (x1 - x0), (top - bottom) - (y1 - y0)
    return character.origin == other.origin and max(abs(wide), abs(high)) < _NO_INK * character.size


def _make_glyph(pieces: list[_Drawn], frame: Frame) -> Glyph:
    first = pieces[0]
    x0, baseline = frame.to_page.on_point(*first.origin)
    ink = Box.around([frame.place_box(*piece.ink) for piece in pieces])
    x1 = max(frame.place_box(*piece.advance).x1 for piece in pieces)
    believed = x1 > x0 and -_OVERHANG * first.size <= x1 - ink.x1 <= _BEARING * first.size
    if not believed and not first.text.isspace():
        x0, x1 = min(x0, ink.x0), ink.x1
    return Glyph(first.text, x0, max(x0, x1), baseline, first.size, first.guessed)


def _share(glyph: Glyph, texts: str) -> Iterator[Glyph]:
    """Divide the glyph's place among the letters that it prints."""
    step = (glyph.x1 - glyph.x0) / len(texts)
    for place, text in enumerate(texts):
        yield replace(glyph, text=text, x0=glyph.x0 + place * step, x1=glyph.x0 + (place + 1) * step)
