"""A context cut into the sentences that an extracted answer is made of."""

import re
from itertools import pairwise

_END = re.compile(r"(?<=[.!?…])[\"'»”)]*\s+(?=[\"'«“¿¡(]*[^\W\d_a-zà-ÿ])|\n+")
"""Behind a full stop, question or exclamation mark, before a word with a capital; and at line ends."""


def split_sentences(context: str) -> list[tuple[int, int]]:
    """Start and end of each sentence in characters, without the spaces around it, in order.

    A rule of punctuation, not of grammar: an abbreviation before a capital ends a sentence here. Together they hold
    every character of `context` that is no space.
    """
    borders = [0, *(found.end() for found in _END.finditer(context)), len(context)]
    spans = []
    for start, end in pairwise(borders):
        text = context[start:end]
        if text.strip():
            begins = start + len(text) - len(text.lstrip())
            spans.append((begins, begins + len(text.strip())))
    return spans
