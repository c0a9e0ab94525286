"""Explained questions in numbers: documents, words, and how many sentences an explanation has.

As Goenaga et al. (2023) show them in tables 2 and 9. A word is what stands between white space.
"""

from collections import Counter
from collections.abc import Sequence

from medexam.frozen_model import FrozenModel
from medexam.questions import Language
from medexam.text import split_sentences

LENGTHS = ("1", "2", "3", "more than 3")
"""The numbers of sentences that are told apart."""


class ExplanationStatistics(FrozenModel):
    """What explained questions hold."""

    name: str
    language: Language
    source: str
    documents: int
    """Questions; of a file of spans, different pairs of question and context."""
    words: int
    """Of all that a document holds: case, question, options and explanation, as far as the source has them."""
    words_per_document: float
    specialties: dict[str, int]
    """Specialty -> its documents, the most frequent first; empty if the source does not tell it."""
    answers: bool
    """Whether `sentences` counts the parts that argue for the right option, and not whole explanations."""
    explanations: int
    """Texts whose sentences are counted."""
    sentences: dict[str, float]
    """`1`, `2`, `3` or `more than 3` sentences -> percent of `explanations`."""


def sentence_shares(texts: Sequence[str]) -> dict[str, float]:
    """Map each number of sentences, as in `LENGTHS`, to the percent of `texts` that have that number; 0 of none."""
    counts = Counter(min(len(split_sentences(text)), len(LENGTHS)) for text in texts)
    total = max(1, len(texts))
    return {name: 100 * counts[number] / total for number, name in enumerate(LENGTHS, start=1)}
