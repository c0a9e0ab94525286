"""How well a span matches its references: exact match, F1, precision and recall over words, as in SQuAD v1.1.

Strings in, numbers out: this knows nothing of where a span stands in its context. SQuAD's rule is made for English: in
Spanish it deletes the preposition "a", so that "hepatitis A" equals "hepatitis", and keeps the articles and the marks
beyond ASCII. The second pair of scores uses MLQA's Spanish rule. Both rules glue what a hyphen, a slash or a decimal
mark joins ("3,5" equals "35"), and both tell accents apart.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

Normalisation = Literal["squad", "spanish"]
"""Whose punctuation and articles do not count: SQuAD v1.1's English ones, or MLQA's Spanish ones."""

Words = tuple[str, ...]


_ASCII_MARKS = frozenset(string.punctuation)
_ARTICLES: dict[Normalisation, re.Pattern[str]] = {
    "squad": re.compile(r"\b(?:an?|the)\b"),
    "spanish": re.compile(r"\b(?:un|una|unos|unas|el|la|los|las)\b"),
}


class SpanScores(NamedTuple):
    """One prediction against its references, from 0 to 1."""

    exact_match: float
    """1 where it equals a reference after normalising, else 0."""
    f1: float
    """The highest F1 over the references."""
    precision: float
    """Share of its words that the reference with the highest F1 has; 0 of none."""
    recall: float
    """Share of that reference's words that it has; 0 of none."""


def score_span(prediction: str, references: Sequence[str], normalisation: Normalisation = "squad") -> SpanScores:
    """Score `prediction`: the maximum of exact match and of F1 over `references`, each on its own.

    The rule of Rajpurkar et al. (2016), "SQuAD: 100,000+ questions for machine comprehension of text", after Unicode's
    NFC, without which a decomposed accent splits its word. Where nothing is left of both sides, the exact match is 1
    and F1 is 0, as in v1.1; the v2 rule gives 1. Raises `ValueError` without references, and if
    `references` is a string.
    """
    if isinstance(references, str):
        raise ValueError(f"references is the text {references!r}: put it into a list, also a single one")
    if not references:
        raise ValueError("a span needs at least one reference: leave questions without an answer out")
    answer_words = comparable_words(prediction, normalisation)
    reference_words = [comparable_words(reference, normalisation) for reference in references]
    f1, precision, recall = max(_overlap(answer_words, words) for words in reference_words)
    return SpanScores(float(answer_words in reference_words), f1, precision, recall)


def comparable_words(text: str, normalisation: Normalisation = "squad") -> Words:
    """Reduce a text to what is compared: NFC, lower case, no punctuation, no articles, split at spaces; in this order.

    `squad` drops the 32 ASCII marks and a, an, the. `spanish` drops all of Unicode's punctuation and un, una, unos,
    unas, el, la, los, las, as Lewis et al. (2020), "MLQA: Evaluating cross-lingual extractive question answering"; it
    keeps "lo", "al" and "del", and signs that are no punctuation, such as the ordinal mark in "1º".
    """
    text = unicodedata.normalize("NFC", text).lower()
    for mark in set(text):
        if mark in _ASCII_MARKS or (normalisation == "spanish" and unicodedata.category(mark).startswith("P")):
            text = text.replace(mark, "")
    return tuple(_ARTICLES[normalisation].sub(" ", text).split())


def _overlap(answer_words: Words, reference_words: Words) -> tuple[float, float, float]:
    """Compute F1, precision and recall over words, each counted as often as both sides have it."""
    overlap = (Counter(answer_words) & Counter(reference_words)).total()
    if not overlap:
        return 0.0, 0.0, 0.0
    both = len(answer_words) + len(reference_words)
    return 2 * overlap / both, overlap / len(answer_words), overlap / len(reference_words)
