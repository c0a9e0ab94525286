"""Whether what a PDF gives as text is text: fonts that do not tell their characters give anything."""

import re
from collections.abc import Sequence
from pathlib import Path

from medexam.errors import DatasetError
from medexam_companions.booklets.pages.layout import Line

MOST_UNREADABLE = 0.1
"""Share of the characters over which a booklet cannot be read."""
FEWEST_KNOWN = 0.3
"""Share of the words that stand in the language's list under which a booklet is no text; real ones have 0.8."""

_UNREADABLE = re.compile(r"[\ue000-\uf8ff\ufffd]")
_WORD = re.compile(r"\b[^\W\d_]{4,}\b")
_ENOUGH_WORDS = 50
_WAY = (
    "make its text again by OCR (`ocrmypdf --force-ocr -l spa IN.pdf OUT.pdf`) and build from that, or take the PDF "
    "that the Ministry publishes"
)


def check_legible(path: Path, lines: Sequence[Line], language_words: frozenset[str]) -> None:
    """Raise `DatasetError` if the lines hold hardly any text; `language_words` may be none."""
    text = "\n".join(line.text for line in lines)
    printed = sum(not character.isspace() for character in text)
    unreadable = len(_UNREADABLE.findall(text))
    if unreadable > MOST_UNREADABLE * printed:
        raise DatasetError(
            f"{path}: {unreadable} of {printed} characters cannot be read: its fonts do not say which characters they "
            f"print: {_WAY}"
        )
    words = _WORD.findall(text.lower())
    known_count = sum(word in language_words for word in words)
    if language_words and len(words) >= _ENOUGH_WORDS and known_count < FEWEST_KNOWN * len(words):
        raise DatasetError(
            f"{path}: only {known_count} of {len(words)} words are in the word lists: its fonts do not say which "
            f"characters they print, or it is in another language: give --language, or {_WAY}"
        )
