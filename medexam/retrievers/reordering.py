"""Retrievers over other retrievers: reciprocal rank fusion of several, and a cross-encoder's second look at one's best.

Fusion looks at ranks alone, so that scores need no common unit. A cross-encoder reads query and passage together.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np

from medexam.errors import EngineError
from medexam.retrievers.base import Hit, Passage, Retriever
from medexam.retrievers.corpora import Corpus
from medexam.retrievers.encoders import BATCH, MEDCPT
from medexam.weights import MINILM, Weights, find_encoder_weights, loading, loading_options

DEPTH = 100
"""Passages that each member is asked for, unless more are to be found."""
_MEDCPT_CROSS = "ncbi/MedCPT-Cross-Encoder"
_MEDCPT_CROSS_REVISION = "refs/pr/3"
"""The hub's own conversion to safetensors; the main branch holds a pickle alone."""
_MEDCPT_CROSS_TOKENS = 512


class FusionRetriever:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): the sum of 1 / (constant + rank) over members.

    A member that does not return a passage adds nothing to its score. The paper's constant is 60, MedRAG's 100.
    """

    def __init__(self, members: Sequence[Retriever], corpus: Corpus, *, constant: int = 100) -> None:
        """Fuse members that all search `corpus`, whose order settles equal scores."""
        self.depth = min(DEPTH, corpus.count)
        self.corpus = corpus
        self.members = tuple(members)
        self.constant = constant
        self._order = {passage.id: position for position, passage in enumerate(corpus.passages)}

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best passages of each query, best first; see `Retriever.search`."""
        hits_by_member = [member.search(queries, max(k, self.depth)) for member in self.members]
        return [self._fuse(rankings, k) for rankings in zip(*hits_by_member, strict=True)]

    def _fuse(self, rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
        parts: dict[str, list[float]] = {}
        passages: dict[str, Passage] = {}
        for hits in rankings:
            for hit in hits:
                passages.setdefault(hit.passage.id, hit.passage)
                parts.setdefault(hit.passage.id, []).append(1 / (self.constant + hit.rank))
        # fsum: the same parts make the same score whichever member they come from, so that ties are ties
        scores = {key: fsum(terms) for key, terms in parts.items()}
        best = sorted(scores, key=lambda key: (-scores[key], self._order[key]))[:k]
        return [Hit(passages[key], scores[key], rank) for rank, key in enumerate(best, start=1)]


class RerankingRetriever:
    """A `Retriever` that orders the best passages of another by a cross-encoder's logit."""

    def __init__(self, base: Retriever, cross_encoder: str | Path, depth: int, *, revision: str | None = None) -> None:
        """Load the cross-encoder: `medcpt`, or a folder or hub id of sentence-transformers with one output.

        `depth` is how many of the base's passages it reads for each query. Raises `EngineError` if it cannot be loaded.
        """
        self.base = base
        self.depth = depth
        weights, tokens = find_cross_encoder(cross_encoder, revision)
        with loading(weights):
            from sentence_transformers import CrossEncoder

            self._model: Any = CrossEncoder(weights.source, max_length=tokens, **loading_options(weights))
        self._label = weights.label
        if self._model.num_labels != 1:
            raise EngineError(f"{self._label}: it has {self._model.num_labels} outputs, and a ranking needs one score")

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the `k` best of the base's `depth` passages, best first; equal scores in the order of the base.

        Scores are the cross-encoder's logits. Where `k` is larger than the depth, `k` passages are read. All pairs of
        all queries are scored in one call. Raises `ValueError` if the corpus is smaller than `k` or the depth.
        """
        hit_lists = self.base.search(queries, max(k, self.depth))
        pairs = [(query, hit.passage.text) for query, hits in zip(queries, hit_lists, strict=True) for hit in hits]
        scores = iter(self._score(pairs))
        new_hits = [[replace(hit, score=next(scores)) for hit in hits] for hits in hit_lists]
        best = [sorted(hits, key=lambda hit: -hit.score)[:k] for hits in new_hits]
        return [[replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1)] for hits in best]

    def _score(self, pairs: list[tuple[str, str]]) -> list[float]:
        if not pairs:
            return []
        from torch.nn import Identity

        # The logit and not its sigmoid: in float32 that is 1 for every good passage.
        batch = BATCH.get(self._model.device.type, BATCH["cpu"])
        scores = self._model.predict(pairs, batch_size=batch, activation_fn=Identity(), show_progress_bar=False)
        if not np.isfinite(scores).all():
            raise EngineError(f"{self._label}: its scores are not numbers; its weights are damaged, or need float32")
        values: list[float] = np.asarray(scores, dtype=np.float64).tolist()
        return values


def find_cross_encoder(name: str | Path, revision: str | None = None) -> tuple[Weights, int | None]:
    """Find and identify the weights of a cross-encoder without loading them, and the tokens at which pairs are cut.

    None tokens: as the model says itself. Raises what `find_weights` raises.
    """
    if name == MINILM:
        raise EngineError("minilm is not a cross-encoder: name medcpt, a folder or a hub id")
    if name == MEDCPT:
        return find_encoder_weights(_MEDCPT_CROSS, revision or _MEDCPT_CROSS_REVISION), _MEDCPT_CROSS_TOKENS
    return find_encoder_weights(name, revision), None
