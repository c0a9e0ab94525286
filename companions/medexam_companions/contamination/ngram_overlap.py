"""Which questions share a run of words with texts of a corpus, as Brown et al. (2020, GPT-3) count contamination.

Words are runs of two letters or digits and more, in small letters, so that what numbers the options counts for nothing.
Texts stream by: only the questions' n-grams are kept.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from medexam import Question

WORDS = 13
"""How many words in a row count as shared, as in GPT-3."""
_WORD = re.compile(r"\w\w+")


class QuestionGrams:
    """The n-grams of questions, over the context, the stem and the options in turn."""

    def __init__(self, questions: Iterable[Question], n: int = WORDS) -> None:
        self.n = n
        self.too_short: set[str] = set()
        """Keys of questions with fewer words, which cannot overlap."""
        self._keys_by_gram: defaultdict[int, set[str]] = defaultdict(set)
        for question in questions:
            grams = list(self._grams(" ".join([question.asked, *(option.text for option in question.options)])))
            if not grams:
                self.too_short.add(question.key)
            for gram in grams:
                self._keys_by_gram[gram].add(question.key)

    def find(self, texts: Iterable[str]) -> Mapping[str, int]:
        """Map the key of each question that shares an n-gram with a text to the number of texts that do so."""
        counts: defaultdict[str, int] = defaultdict(int)
        for text in texts:
            shared = [self._keys_by_gram[gram] for gram in self._grams(text) if gram in self._keys_by_gram]
            for key in set().union(*shared):
                counts[key] += 1
        return counts

    def _grams(self, text: str) -> Iterable[int]:
        """Yield hashes of 64 bits, of which two that differ are equal once in 10^19 pairs."""
        words = _WORD.findall(text.lower())
        return (hash(tuple(words[start : start + self.n])) for start in range(len(words) - self.n + 1))
