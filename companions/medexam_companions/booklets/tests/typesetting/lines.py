"""Texts to lines: words are broken at Spanish syllables if a style asks for it."""

import re
from collections.abc import Callable

_ONSETS = re.compile(r"(?:[bcfgpt]r|[bcfgp]l|dr|ch|ll|rr|qu|gu|[^aeiouáéíóúü\W\d_])?[aeiouáéíóúü]", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{5,}")


def break_lines(
    text: str, first: float, width: float, measure: Callable[[str], float], *, hyphens: bool = False
) -> list[str]:
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
            cut = _break_word(rest, room - measure(begun), measure, hyphens)
            if cut is None and not line:
                line, rest = rest, ""
                continue
            if cut is not None:
                line, rest = begun + cut[0], cut[1]
            lines.append(line)
            line, room = "", width
    return [*lines, line] if line else lines or [""]


def _break_word(word: str, room: float, measure: Callable[[str], float], hyphens: bool) -> tuple[str, str] | None:
    """The longest beginning that fits, with its hyphen, and the rest."""
    cuts = [(word[: match.end()], word[match.end() :]) for match in re.finditer(r"(?<=\w\w)-(?=\w)", word)]
    if hyphens and (match := _WORD.search(word)) and "-" not in word:
        for place in _syllables(match.group()):
            at = match.start() + place
            cuts.append((f"{word[:at]}-", word[at:]))
    fitting = [cut for cut in cuts if measure(cut[0]) <= room]
    return max(fitting, key=lambda cut: len(cut[0]), default=None)


def _syllables(word: str) -> list[int]:
    """Places where a word may be broken: two letters at least on either side, never before a bare consonant."""
    starts = [match.start() for match in _ONSETS.finditer(word)]
    return [place for place in starts if 2 <= place <= len(word) - 2 and word[place].lower() not in "aeiouáéíóúü"]
