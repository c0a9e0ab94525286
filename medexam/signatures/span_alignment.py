"""Where in a text an extracted answer stands, though its writer changed its edges.

A pure function of two texts. What is given back is always a literal part of the context; where none can be told, it
says so and invents none.
"""

import re
import unicodedata
from difflib import SequenceMatcher
from typing import NamedTuple

from medexam.questions import Alignment

_LEAST_SHARE = 0.5
"""Of a reply's words, the share that must stand in one run in the context."""
_LEAST_WORDS = 3
"""The fewest words of such a run; a shorter reply must be found as a whole."""
_IN_WORD = r"[\w\u0300-\u036f]"
"""A character of a word; the marks are those of decomposed accents."""
_WORD = re.compile(rf"\w{_IN_WORD}*")
_WRAPPING = " \t\n\r\"'`*«»\u201c\u201d\u2018\u2019.,;:"


class FoundSpan(NamedTuple):
    """A part of a context."""

    start: int
    """First character, from 0."""
    end: int
    """The character after the last."""
    alignment: Alignment


def find_span(context: str, reply: str) -> FoundSpan | None:
    """Find the part of `context` that `reply` quotes, at its first occurrence; None where it quotes none.

    `literal` where the reply, without spaces, quotation marks and stops around it, stands in the context as whole
    words. Else `aligned`: the longest run of words that both share, whatever stands between the words and however
    they are cased, where it has at least half of the reply's words and three of them, or all.
    """
    quote = reply.strip().strip(_WRAPPING)
    words = [_fold(word) for word in _WORD.findall(quote)]
    if not words:
        return None
    # It neither begins nor ends inside a word.
    begin = rf"(?<!{_IN_WORD})" if re.match(_IN_WORD, quote) else ""
    end = rf"(?!{_IN_WORD})" if re.match(_IN_WORD, quote[-1]) else ""
    if (match := re.search(f"{begin}{re.escape(quote)}{end}", context)) is not None:
        return FoundSpan(*match.span(), "literal")
    places = [word_match.span() for word_match in _WORD.finditer(context)]
    context_words = [_fold(context[start:stop]) for start, stop in places]
    run = SequenceMatcher(None, context_words, words, autojunk=False).find_longest_match()
    if run.size == 0 or run.size < min(_LEAST_WORDS, len(words)) or run.size < _LEAST_SHARE * len(words):
        return None
    return FoundSpan(places[run.a][0], places[run.a + run.size - 1][1], "aligned")


def _fold(word: str) -> str:
    return unicodedata.normalize("NFC", word).casefold()
