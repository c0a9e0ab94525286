"""Cleans the texts of other people's files: one Unicode form, no HTML, no number that is none.

What is shown to a model is what a reader of the source sees: entities are decoded, tags become line breaks or nothing,
and raised or lowered signs stay such where Unicode has them.
"""

import ast
import codecs
import html
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from medexam.inputs import LONGEST_TEXT, UnreadableError, check_length, decode, parse_json

_UNSEEN = dict.fromkeys(map(ord, "\u200b\u2060\ufeff"))
_COUNTED = frozenset({"start", "answer_start"})
"""Fields that count the characters of a text."""
_TAG = re.compile(
    r"<(/?)(?:(br|hr|p|div|li|ul|ol|tr|table|blockquote|section|article|h[1-6])|(wbr|span|font|center|b|i|u|s|em|strong"
    r"|small|big|mark|code|pre|a|thead|tbody|td|th))(?:\s+[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))*\s*/?>",
    re.IGNORECASE,
)
"""A tag that breaks the line, or one within a line."""
_UNSHOWN = re.compile(r"<!--.*?-->|<(style|script)\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_MOVED = re.compile(r"<(su[bp])>([^<>]*)</\1>", re.IGNORECASE)
_LETTERS = "áéíóúüñçàèìòùâêîôûëïöäßãõœæ"
_SMALL, _LARGE = f"a-z{_LETTERS}", _LETTERS.upper()
_BETWEEN_WORDS = "‹›“”„‘’–—…•·ºªµ™¢¶\xa0"  # noqa: RUF001 - as they are written
_AROUND_WORDS = "¿¡«»°€£§©®±²³¹×÷¼½¾"  # noqa: RUF001
_UNLIKELY = re.compile(
    f"[^\t\r\n -~{_LETTERS}{_LARGE}{_BETWEEN_WORDS}{_AROUND_WORDS}]|[{_LETTERS}]{{3}}|[{_LARGE}]{{3}}"
    f"|[{_SMALL}][{_LARGE}{_AROUND_WORDS}]+[{_SMALL}]"
)
"""What texts of western Europe do not hold, and bytes of another encoding soon give."""
_MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_LOOKED_AT = 1 << 16
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_LINE_ENDS = re.compile(r"[ \t\r]*\n\s*")
_SIGNS = {
    "sup": str.maketrans("0123456789+-−=()abcdefghijklmnoprstuvwxyz", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"),  # noqa: RUF001
    "sub": str.maketrans("0123456789+-−=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"),  # noqa: RUF001
}


def find_encoding(content: bytes) -> str:
    """Find what a text is written in. It is UTF-8, UTF-16 with its mark or a zero beside each English letter, or
    Windows-1252.

    Any bytes could be the last, so it is taken only if they give texts of western Europe. Raises `UnreadableError`.
    """
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8-sig")
    if encoding == "utf-8-sig" and content[:_LOOKED_AT].count(0) > len(content[:_LOOKED_AT]) / 4:
        encoding = "utf-16-be" if content[:1] == b"\0" else "utf-16-le"
    for tried in (encoding, "cp1252"):
        try:
            text = content.decode(tried)
        except UnicodeDecodeError:
            continue
        if tried != "cp1252" or (encoding == "utf-8-sig" and _UNLIKELY.search(text) is None):
            return tried
    decode(content)
    raise UnreadableError(f"is not {encoding.upper()}")


def clean_row(cells: Mapping[str, Any] | str, place: str, *, as_written: bool) -> Mapping[str, Any] | str:
    """Clean the texts of a row and put None for each NaN; what is wrong with a row stays as it is.

    Texts stay as they are if they are to be `as_written`, or a field counts their characters. Raises `UnreadableError`
    that names the row's `place` for a text that is longer than any of a question.
    """
    if isinstance(cells, str):
        return cells
    try:
        # One look at all texts in a row decides of nearly all rows.
        together = "".join(cells.values())
    except TypeError:
        together = "<"
    if len(together) <= LONGEST_TEXT and _is_plain(together):
        return cells
    parts = _within(cells)
    for part in parts:
        if isinstance(part, str) and len(part) > LONGEST_TEXT:
            check_text_length(part, f"{place} holds a text that")
    counts = any(isinstance(part, dict) and not _COUNTED.isdisjoint(part) for part in parts)
    return cells if as_written or counts else _clean(cells)


def clean_text(text: str) -> str:
    """Put a text in Unicode's composed form, without HTML; one that holds a list or mapping only in that form."""
    text = normalise(text)
    if "<" not in text and "&" not in text:
        return text
    return text if unpack(text) is not text else _without_html(text)


def normalise(text: str, *, accents: bool = True) -> str:
    """Put a text in Unicode's composed form (NFC), on request without accents."""
    if text.isascii():
        return text
    text = text.translate(_UNSEEN)
    if accents:
        return unicodedata.normalize("NFC", text)
    return "".join(
        character for character in unicodedata.normalize("NFD", text) if not unicodedata.combining(character)
    )


def unpack(value: Any) -> Any:
    """Unpack a list or mapping that stands in a cell as text, as JSON or Python writes it; return any other value as it
    is.
    """
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{", "("):
        return value
    for parse in (parse_json, ast.literal_eval):
        try:
            literal = parse(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(literal, (list, dict, tuple)):
            return _clean([*literal] if isinstance(literal, tuple) else literal)
    return value


def check_text_length(text: str, description: str) -> None:
    """Raise `UnreadableError` with the way out for a text that is too long; `description` begins the message."""
    try:
        check_length(text, description)
    except UnreadableError as error:
        raise UnreadableError(f"{error}: shorten it, or remove it") from None


def _is_plain(text: str) -> bool:
    return text.isascii() and "<" not in text and "&" not in text


def _within(value: object) -> list[object]:
    """List a value, and all that it holds."""
    parts = [value]
    for part in parts:
        if isinstance(part, (dict, list)):
            parts += part.values() if isinstance(part, dict) else part
    return parts


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value if _is_plain(value) else clean_text(value)
    if isinstance(value, list):
        return [_clean(element) for element in value]
    if isinstance(value, Mapping):
        return {normalise(key) if isinstance(key, str) else key: _clean(content) for key, content in value.items()}
    return None if isinstance(value, float) and value != value else value


def _without_html(text: str) -> str:
    lower = text.lower()

    def replace(tag: re.Match[str]) -> str:
        if tag[2]:
            return "\n"
        name = tag[3].lower()
        # A letter between signs, as in a <b>, is a tag only if it is closed.
        if name != "wbr" and not (f"</{name}>" in lower and f"<{name}" in lower):
            return tag[0]
        return " " if tag[1] and name in ("td", "th") else ""

    visible_text = _UNSHOWN.sub("", text)
    plain_text = _MOVED.sub(_moved, _TAG.sub(replace, visible_text))
    if "\n" in plain_text and plain_text.count("\n") > text.count("\n"):
        plain_text = _LINE_ENDS.sub("\n", plain_text).strip()
    return normalise(_ENTITY.sub(lambda entity: html.unescape(entity[0]).replace("\xa0", " "), plain_text))


def _moved(match: re.Match[str]) -> str:
    """Write what stands above or below the line in Unicode's signs for it; a power that has none behind `^`."""
    name, content = match[1].lower(), html.unescape(match[2]).strip()
    signs = _SIGNS[name]
    if all(ord(character) in signs for character in content):
        return content.translate(signs)
    if name == "sub" or not any(map(str.isalnum, content)):
        return content
    return f"^{content}" if len(content) == 1 else f"^({content})"
