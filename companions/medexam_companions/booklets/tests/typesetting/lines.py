"""Texts to lines, which break words at their own hyphens alone."""

import re
from collections.abc import Callable


def break_lines(text: str, first: float, width: float, measure: Callable[[str], float]) -> list[str]:
    """Lines of `text`, the first at most `first` wide, the others `width`; hyphens of the spelling end lines too."""
    lines: list[str] = []
    line, room = "", first
    for word in text.split():
        rest = word
        while rest:
            begun = f"{line} " if line else ""
            if measure(begun + rest) <= room:
                line, rest = begun + rest, ""
                continue
            cut = _break_word(rest, room - measure(begun), measure)
            if cut is None and not line:
                line, rest = rest, ""
                continue
            if cut is not None:
                line, rest = begun + cut[0], cut[1]
            lines.append(line)
            line, room = "", width
    return [*lines, line] if line else lines or [""]


def _break_word(word: str, room: float, measure: Callable[[str], float]) -> tuple[str, str] | None:
    """The longest beginning that fits, with its hyphen, and the rest."""
    cuts = [(word[: match.end()], word[match.end() :]) for match in re.finditer(r"(?<=\w\w)-(?=\w)", word)]
    return max((cut for cut in cuts if measure(cut[0]) <= room), key=lambda cut: len(cut[0]), default=None)
