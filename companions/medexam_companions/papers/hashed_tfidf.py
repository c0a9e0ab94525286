"""DrQA's retriever, the kind `hashed_tfidf`: TF-IDF over words and pairs of neighbouring words, hashed into 2^24 bins.

Chen et al. (2017), "Reading Wikipedia to answer open-domain questions"; the IR solver of Vilares and Gómez-Rodríguez
(2019). Passages and counts are in memory.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from medexam.errors import DatasetError
from medexam.questions import Language
from medexam.retrievers import TOKEN, Hit, Passage, load_stop_words, rank_scores

STOP_LISTS: dict[Language, str] = {"en": "EN_PLUS", "es": "SPANISH", "it": "ITALIAN", "ru": "RUSSIAN"}
"""The ends of the names of bm25s' lists; the English one is NLTK's, which DrQA has too."""


class HashedTfidfRetriever:
    """Passages by the inner product of hashed TF-IDF vectors.

    A term weighs ln(1 + tf) * max(0, ln((n - df + 0.5) / (df + 0.5))), in queries too. Words are lower-cased and not
    stemmed; a word or pair with a stop word or a punctuation mark is no term. Title and content are searched as one
    text. Scores have no upper bound.
    """

    def __init__(self, passages: Sequence[Passage], language: Language = "en") -> None:
        """Count the terms of all passages.

        Raises `DatasetError` if no passage has a word, or scikit-learn or bm25s, whose stop words it takes, are not
        installed.
        """
        self._passages = passages
        self._stop_words = load_stop_words(language, STOP_LISTS)
        self._vectorizer = import_module("sklearn.feature_extraction.text").HashingVectorizer(
            analyzer=self._terms, n_features=2**24, alternate_sign=False, norm=None, dtype=np.float64
        )
        counts = self._vectorizer.transform(passage.text for passage in passages).tocsc()
        if not counts.nnz:
            raise DatasetError("the corpus has only stop words: check that its text was read correctly")
        n, df = len(passages), np.diff(counts.indptr)
        self._weights = np.maximum(0.0, np.log((n - df + 0.5) / (df + 0.5)))
        counts.data = np.log1p(counts.data)
        self._by_term: Any = counts

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first; see `Retriever.search`."""
        hits = []
        for query in self._vectorizer.transform(queries):
            terms = np.log1p(query.data) * self._weights[query.indices] ** 2
            scores = self._by_term[:, query.indices] @ terms
            hits.append(rank_scores(scores, lambda rows: [self._passages[row] for row in rows], k))
        return hits

    def _terms(self, text: str) -> Iterator[str]:
        """Yield the words and pairs of a text."""
        tokens = TOKEN.findall(text.lower())
        fit = [token not in self._stop_words and (token[0].isalnum() or token[0] == "_") for token in tokens]
        yield from (token for token, is_fit in zip(tokens, fit, strict=True) if is_fit)
        yield from (f"{a} {b}" for (a, b), both in zip(pairwise(tokens), pairwise(fit), strict=True) if all(both))
