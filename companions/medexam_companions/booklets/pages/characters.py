"""What the codes of a PDF's characters stand for: ligatures, hyphens, and the private codes of symbol fonts.

A private code is read by the name that the font itself gives to its glyph, else by the symbol font that it names.
"""

import ctypes
import io
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from medexam_companions.booklets.pages import pdfium
from medexam_companions.booklets.pages.symbols import find_symbol

_SPELLED_OUT = {"\x02": "-", "\xad": "-", "\u2010": "-", "\u2011": "-", "\xa0": " "} | {
    code: unicodedata.normalize("NFKC", code) for code in map(chr, range(0xFB00, 0xFB07))
}
_TEX_LIGATURES = dict(zip("\x1b\x1c\x1d\x1e\x1f", ("ff", "fi", "fl", "ffi", "ffl"), strict=True))
"""Of TeX's Cork encoding, which its fonts of dots do not tell."""
_PRIVATE = range(0xE000, 0xF900)
UNREADABLE = "\ufffd"
"""Stands for a printed glyph of which the PDF does not tell the character."""


Font = tuple[str, dict[int, str]]
"""A font's name, without the mark of a subset, and the names of its glyphs by code; none if they are not embedded."""


def find_font(text: Any, fonts: dict[int, Font], place: int) -> Font:
    """Find the font of the character at `place` of a page's text; those that were read stand in `fonts`."""
    item = pdfium.FPDFText_GetTextObject(text, place)
    font = pdfium.FPDFTextObj_GetFont(item) if item else None
    if not font:
        return "", {}
    address = ctypes.cast(font, ctypes.c_void_p).value or 0
    if address not in fonts:
        fonts[address] = _read_base_name(font), _read_names(_read_content(font))
    return fonts[address]


def clean_character(code: int, find_font: Callable[[], Font], *, guessed: bool, has_ink: bool) -> str:
    """Return the characters that a PDF gives as `code`; empty for what is not printed.

    A private code that nothing explains stays as it is, for the review. So does a guessed ASCII sign or letter; other
    guesses, and codes of no character, become `UNREADABLE` if they are printed.
    """
    character = chr(code)
    if code in _PRIVATE:
        font, names = find_font()
        name = names.get(code) or names.get(code & 0xFF) or ""
        return _read_glyph_name(name) or find_symbol(code, font) or character
    if guessed and not (character.isascii() and character.isprintable()) and not character.isalpha():
        return _TEX_LIGATURES.get(character, UNREADABLE) if has_ink else ""
    if code == 0 or unicodedata.category(character) == "Cs" or (character == "\xad" and not has_ink):
        return UNREADABLE if has_ink else ""
    character = _SPELLED_OUT.get(character, character)
    return "" if unicodedata.category(character[0]) in ("Cc", "Cf") else character


def _read_glyph_name(name: str) -> str:
    """Read the characters of a glyph's name in Adobe's list; empty if it is none."""
    from fontTools import agl

    text = agl.toUnicode(name)
    return "" if any(ord(letter) in _PRIVATE for letter in text) else text


def _read_names(content: bytes) -> dict[int, str]:
    """Read glyph names by character code, of a TrueType or OpenType font; none of what cannot be read."""
    from fontTools.ttLib import TTFont, TTLibError

    try:
        font = TTFont(io.BytesIO(content), lazy=True)
        if "post" in font and font["post"].formatType == 3.0:
            return {}
        return {code: name for table in font["cmap"].tables for code, name in table.cmap.items()}
    except (TTLibError, KeyError, ValueError, AssertionError, IndexError, AttributeError):
        return {}


def _read_base_name(font: Any) -> str:
    length = pdfium.FPDFFont_GetBaseFontName(font, None, 0)
    buffer = ctypes.create_string_buffer(max(length, 1))
    pdfium.FPDFFont_GetBaseFontName(font, buffer, length)
    return re.sub(r"^[A-Z]{6}\+", "", buffer.value.decode("utf-8", "replace"))


def _read_content(font: Any) -> bytes:
    if pdfium.FPDFFont_GetIsEmbedded(font) != 1:
        return b""
    length = ctypes.c_size_t()
    pdfium.FPDFFont_GetFontData(font, None, 0, length)
    buffer = (ctypes.c_uint8 * max(length.value, 1))()
    pdfium.FPDFFont_GetFontData(font, buffer, length.value, length)
    return bytes(buffer)[: length.value]
