"""Cleans the texts of other people's files: one Unicode form, no HTML, no number that is none.

What is shown to a model is what a reader of the source sees: entities are decoded, tags become line breaks or nothing,
and what is raised stands behind `^`.
"""

import ast
import html
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from medexam.files import parse_json

_UNSEEN = dict.fromkeys(map(ord, "\u200b\u2060\ufeff"))
_COUNTED = frozenset({"start", "answer_start"})
"""Fields that count the characters of a text."""
_BREAKS = re.compile(r"br|hr|p|div|li|ul|ol|tr|table|blockquote|section|article|h[1-6]")
_WITHIN = re.compile(r"wbr|span|font|center|b|i|u|s|em|strong|small|big|mark|code|pre|a|thead|tbody|td|th|sub")
"""Tags that break the line, and those within a line."""
_TAG = re.compile(r"<(/?)([a-z]+\d?)(?:\s+[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))*\s*/?>", re.IGNORECASE)
_UNSEEN_PARTS = re.compile(r"<!--.*?-->|<(style|script)\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_RAISED = re.compile(r"<sup>(.*?)</sup>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_LINE_ENDS = re.compile(r"[ \t\r]*\n\s*")


def clean_row(cells: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    """Clean the texts of a row and put None for each NaN; what is wrong with a row stays as it is.

    Texts stay as they are if a field counts their characters.
    """
    if isinstance(cells, str):
        return cells
    try:
        # One look at all texts in a row decides of nearly all rows.
        together = "".join(cells.values())
    except TypeError:
        together = "<"
    if _is_plain(together):
        return cells
    parts: list[object] = [cells]
    for part in parts:
        if isinstance(part, (dict, list)):
            parts += part.values() if isinstance(part, dict) else part
    return cells if any(isinstance(part, dict) and not _COUNTED.isdisjoint(part) for part in parts) else _clean(cells)


def normalise(text: str) -> str:
    """Put a text in Unicode's composed form (NFC), without signs that nobody sees."""
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_UNSEEN))


def unpack(value: Any) -> Any:
    """Unpack a list or mapping that stands in a cell as text, as JSON or Python writes it; else return the value."""
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


def _is_plain(text: str) -> bool:
    return text.isascii() and "<" not in text and "&" not in text


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        # A text that holds a list or mapping is only normalised.
        text = value if value.isascii() else normalise(value)
        return text if _is_plain(text) or unpack(text) is not text else _without_html(text)
    if isinstance(value, list):
        return [_clean(element) for element in value]
    if isinstance(value, Mapping):
        return {normalise(key) if isinstance(key, str) else key: _clean(content) for key, content in value.items()}
    return None if isinstance(value, float) and value != value else value


def _without_html(text: str) -> str:
    lower = text.lower()

    def replace(tag: re.Match[str]) -> str:
        name = tag[2].lower()
        if _BREAKS.fullmatch(name):
            return "\n"
        # A letter between signs, as in a <b>, is a tag only if it is closed.
        if not _WITHIN.fullmatch(name) or (name != "wbr" and not (f"</{name}>" in lower and f"<{name}" in lower)):
            return tag[0]
        return " " if tag[1] and name in ("td", "th") else ""

    plain_text = _TAG.sub(replace, _RAISED.sub(r"^(\1)", _UNSEEN_PARTS.sub("", text)))
    if plain_text.count("\n") > text.count("\n"):
        plain_text = _LINE_ENDS.sub("\n", plain_text).strip()
    return normalise(_ENTITY.sub(lambda entity: html.unescape(entity[0]).replace("\xa0", " "), plain_text))
