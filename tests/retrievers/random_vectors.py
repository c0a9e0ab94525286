"""An encoder whose vectors are drawn from a hash of the text: equal texts, equal vectors, and a count of its work."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from medexam.retrievers import EncoderRecord, Passage, build_corpus


class HashEncoder:
    """Neither normalised nor similar to anything: rankings are arbitrary and exact."""

    def __init__(self, dimension: int = 16, revision: str = "1") -> None:
        self.record = EncoderRecord(
            label="hash",
            revision=revision,
            precision="float32",
            dimension=dimension,
            query_tokens=64,
            passage_tokens=512,
            source="hash",
        )
        self.encoded = 0
        """Passages so far."""

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._encode(texts)

    def encode_passages(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        self.encoded += len(passages)
        return self._encode([passage.text for passage in passages])

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") for text in texts]
        rows = [np.random.default_rng(seed).standard_normal(self.record.dimension, dtype=np.float32) for seed in seeds]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.record.dimension)


def corpus_of(count: int, name: str = "numbers"):
    """Passages that differ in every way a store could mix up."""
    passages = [
        Passage(f"{name}-{n}", f"Título {n}" if n % 3 else "", f"content {n} ≥ {n * n}", name) for n in range(count)
    ]
    return build_corpus(name, passages, source="tests")


BLOCK = 256
"""Passages that are encoded at once."""
COUNT = 3 * BLOCK + 40
CORPUS = corpus_of(COUNT)
QUERIES = [f"question {n}" for n in range(30)]
