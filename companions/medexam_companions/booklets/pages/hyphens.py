"""Lines to running text: a hyphen at the end of a line is undone where it parts a word, kept where it joins two.

The booklet itself and the words of earlier exams are the dictionary, with what Spanish spelling does not allow as a
second opinion. Every decision is handed back, so that a human can look at them.
"""

import gzip
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

SHORTEST_WORD = 4
"""Letters; shorter halves are prefixes or syllables more often than words."""
SHORTEST_ACRONYM = 3
"""Letters of a half in capitals, such as ADN or VIH."""
LONGEST_ACRONYM = 7
"""Letters of a name in capitals that stands in no list; longer ones are words."""

_ROMAN = re.compile(r"^[IVX]+$")
_NO_END = "HJKQVWÑ"
"""Letters with which no Spanish syllable ends."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_BEFORE = re.compile(r"([^\W_]+)-\Z")
_AFTER = re.compile(r"^([^\W_]+)")
_ACCENTS = "áéíóú"
_VOWELS = "aeiouáéíóúü"
_STRONG = frozenset("aeoáéíóú")
_NUCLEUS = re.compile(r"[aeiouáéíóúü]+", re.IGNORECASE)
_AFTER_ACCENT = 2
"""Syllables that may follow the accented one in a Spanish word; adverbs in -mente are looked at without it."""
_PREFIXES = (
    "anti auto bio bromo cloro co contra des endo extra hiper hipo infra inter intra iso macro micro mono multi neo "
    "neuro para peri poli post pre pro semi sobre sub super supra trans tras tri "
)
"""Beginnings of words that are words themselves, or stand as such in lists; a space after each."""
_GREEK = frozenset({"alfa", "beta", "gamma", "delta"})
FEWEST_BREAKS = 3
"""Words that a booklet breaks at a line's end before it is taken for one that does."""


class Vocabulary:
    """The words of a booklet where no line breaks them, and `language_words`."""

    def __init__(self, lines: Iterable[str], language_words: frozenset[str] = frozenset()) -> None:
        self._language_words = language_words
        self._words: Counter[str] = Counter()
        halves: list[tuple[str, str]] = []
        before = ""
        for line in lines:
            text = line.lower()
            if before and (after := _AFTER.match(text)):
                halves.append((before, after.group()))
                text = text[after.end() :]
            half = _BEFORE.search(text)
            before = half.group(1) if half else ""
            self._words.update(_WORD.findall(text[: half.start()] if half else text))
        for word in list(self._words):
            if "-" in word:
                self._words.update(word.split("-"))
        self.broken = sum(f"{first}{second}" in self for first, second in halves) >= FEWEST_BREAKS
        """Whether the booklet breaks words at all, as some do and others never."""

    def __contains__(self, word: str) -> bool:
        return word.lower() in self._words or word.lower() in self._language_words


@cache
def load_dictionary(language: str) -> frozenset[str]:
    """Load words of earlier exams in `language` that ship in the package; none if there are none."""
    path = Path(__file__).parent.parent / f"words_{language}.txt.gz"
    return frozenset(gzip.decompress(path.read_bytes()).decode().split()) if path.exists() else frozenset()


def join_lines(lines: Iterable[str], words: Vocabulary, number: int) -> tuple[str, list[dict[str, Any]]]:
    """Join the lines of one paragraph of question `number`; also return what was done with hyphens at their ends: the
    `text` of the word as it was put together, whether the hyphen was `kept`, and the `reason`.
    """
    text = ""
    hyphens: list[dict[str, Any]] = []
    for line in lines:
        before, after = _BEFORE.search(text), _AFTER.match(line)
        if not text:
            text = line
        elif before is None or after is None:
            glued = (text.endswith("-") and not text.endswith(" -")) or text.endswith("/")
            text = f"{text}{line}" if glued else f"{text} {line}"
        else:
            in_spelling, reason = decide(before.group(1), after.group(1), words)
            text = f"{text}{line}" if in_spelling else f"{text[:-1]}{line}"
            mark = "-" if in_spelling else ""
            word = f"{before.group(1)}{mark}{after.group(1)}"
            hyphens.append({"number": number, "text": word, "kept": in_spelling, "reason": reason})
    return re.sub(r" *\n\s*", "\n", text).strip(), hyphens


def decide(first: str, second: str, words: Vocabulary) -> tuple[bool, str]:
    """Return whether the hyphen between two halves is part of the spelling, and why."""
    if not (first.isalpha() and second.isalpha()):
        return True, "a digit stands beside it"
    shouted = f"{first}{second}".isupper()
    if not shouted and (second[0].isupper() or (first[-1].isupper() and len(first) > 1)):
        return True, "a capital stands beside it"
    if f"{first}-{second}" in words:
        return True, "stands with a hyphen elsewhere"
    if f"{first}{second}" in words:
        return False, "stands without a hyphen elsewhere"
    if reason := _find_spelling(first, second):
        return True, reason
    if shouted and (_ROMAN.match(second) or len(first) + len(second) <= LONGEST_ACRONYM or first[-1] in _NO_END):
        return True, "an acronym in capitals"
    if second.lower() == "mente":
        return False, "an adverb"
    shortest, is_prefix = SHORTEST_ACRONYM if shouted else SHORTEST_WORD, f" {first.lower()} " in f" {_PREFIXES}"
    if not is_prefix and min(len(first), len(second)) >= shortest and first in words and second in words:
        return True, "both halves are words"
    if words.broken:
        return False, "a syllable's end"
    return True, "the booklet breaks no words"


def _find_spelling(first: str, second: str) -> str:
    """Return why no Spanish word is broken so; empty if one may be."""
    if len(first) == 1:
        return "no word is broken after one letter"
    if not _NUCLEUS.search(first) or not _NUCLEUS.search(second):
        return "one half has no vowel"
    if second.lower() != "mente" and first.lower() in _GREEK:
        return "a Greek letter's name stands before it"
    if second.lower() != "mente" and _too_many_accents(first, second):
        return "no Spanish word is accented so"
    return ""


def _too_many_accents(first: str, second: str) -> bool:
    """Return whether the joined word would carry two accents, or one too far from its end."""
    joined = re.sub(r"mente$", "", f"{first}{second}".lower())
    places = [place for place, letter in enumerate(joined) if letter in _ACCENTS]
    if len(places) != 1:
        return len(places) > 1
    # Of vowels beside each other, two that are strong or accented are of two syllables.
    runs = _NUCLEUS.findall(joined[places[0] + 1 :].lstrip(_VOWELS))
    syllables = len(runs) + sum({*pair} <= _STRONG for run in runs for pair in pairwise(run))
    return syllables > _AFTER_ACCENT
