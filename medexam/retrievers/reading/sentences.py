"""Passages as sentences, which is how models of natural language inference were trained to read."""

import re

_BREAK = re.compile(r"(?<=[.!?…])\s+")
_FIRST = re.compile(r"\w")


def split_sentences(text: str) -> list[str]:
    """The sentences of a passage in its order, without those that hold no word.

    A line ends a sentence, and so does a mark before a word that does not begin with a small letter. The rule knows no
    abbreviations: "Dr. Smith" is cut in two.
    """
    found: list[str] = []
    for line in text.splitlines():
        sentences: list[str] = []
        for part in _BREAK.split(line.strip()):
            first = _FIRST.search(part)
            if sentences and (first is None or first[0].islower()):
                sentences[-1] += f" {part}"
            elif first is not None:
                sentences.append(part)
        found += sentences
    return found
