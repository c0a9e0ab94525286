"""Exact inner-product search by FAISS over the vectors of a data set, with repeatable scores and ties.

`datasets` adds a flat index of FAISS to the data set, or to one part of it after the other if it is large. Its scores
are in float32: they differ in the last digits with the number of queries, and among equal scores any is kept. So a few
more candidates than asked are taken, those that can matter are scored again in float64 one by one, and ordered by score
and then by place in the corpus; where a tie reaches beyond the candidates, more are fetched. Rankings then do not
depend on which other queries were asked, nor on the size of a part.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.errors import EngineError
from medexam.library_logging import quiet_datasets
from medexam.retrievers.passage_rows import VECTOR, Vectors

Scores = NDArray[np.float64]
RoughScores = NDArray[np.float32]
Rows = NDArray[np.int64]

PART_BYTES = 1 << 29
"""How much of the vectors FAISS holds at a time; as much as that stays in memory between searches."""
MARGIN = 16
"""How many candidates more than asked for."""
_GATHER_BYTES = 1 << 23
_ROUNDING = 1e-6
"""Error of a float32 inner product, as a share of the product of the two lengths."""


class StoredVectors:
    """The vectors of an index's data set."""

    def __init__(self, rows: Any, part_bytes: int = PART_BYTES) -> None:
        """Take a `datasets.Dataset` with the column `vector`."""
        self._rows = rows.select_columns([VECTOR])
        self._arrays = self._rows.with_format("numpy")
        dimension = rows.features[VECTOR].length
        self.shape: tuple[int, int] = (len(rows), dimension)
        self._step = max(1, part_bytes // (dimension * 4))
        self._whole: tuple[Any, float] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Rows) -> Vectors:
        """Read the vectors of rows of any shape `[...]`, as `[..., dimension]`; -1 is the last row."""
        unique, inverse = np.unique(rows % len(self), return_inverse=True)
        vectors: Vectors = self._arrays[unique][VECTOR]
        return vectors[inverse.reshape(rows.shape)]

    def find(self, queries: Vectors, depth: int) -> tuple[RoughScores, Rows, float]:
        """Find FAISS's best rows of each query, `[n, depth]`, best first, with its scores and the longest length."""
        scores = np.empty((len(queries), 0), dtype=np.float32)
        rows = np.empty((len(queries), 0), dtype=np.int64)
        longest = 0.0
        for start, part, length in self._parts():
            part_scores, places = part.search_batch(VECTOR, queries, min(depth, len(part)))
            scores, rows = best_of([scores, part_scores], [rows, places + start], depth)
            longest = max(longest, length)
        return scores, rows, longest

    def _parts(self) -> Iterator[tuple[int, Any, float]]:
        """Yield the first row of each part, the part with FAISS's index, and the length of its longest vector."""
        if self._whole is not None:
            yield 0, *self._whole
            return
        for start in range(0, len(self), self._step):
            indexed = self._index(start)
            if self._step >= len(self):
                self._whole = indexed
            yield start, *indexed

    def _index(self, start: int) -> tuple[Any, float]:
        faiss = load_faiss()
        stop = min(start + self._step, len(self))
        part = self._rows.select(range(start, stop))
        with quiet_datasets():
            part.add_faiss_index(VECTOR, metric_type=faiss.METRIC_INNER_PRODUCT)
        step = max(1, _GATHER_BYTES // (self.shape[1] * 4))
        blocks = (self._arrays[first : min(first + step, stop)][VECTOR] for first in range(start, stop, step))
        return part, math.sqrt(max(float(np.einsum("ij,ij->i", block, block).max()) for block in blocks))


def search_exhaustively(vectors: StoredVectors, queries: Vectors, k: int) -> tuple[Scores, Rows]:
    """Return scores and rows `[n, k]` of each query's `k` best rows, best first, equal scores in the order of rows.

    `queries` is `[n, d]`; `1 <= k <= len(vectors)`.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    scores = np.empty((len(queries), k), dtype=np.float64)
    rows = np.empty((len(queries), k), dtype=np.int64)
    open_queries = np.arange(len(queries))
    depth = k + MARGIN
    while len(open_queries):
        depth = min(depth, len(vectors))
        batch = queries[open_queries]
        rough_scores, candidates, longest = vectors.find(batch, depth)
        error = 2 * _ROUNDING * np.linalg.norm(batch, axis=1) * longest
        candidate_count = (rough_scores >= rough_scores[:, k - 1, None] - error[:, None]).sum(axis=1).max()
        scores[open_queries], rows[open_queries] = order_candidates(vectors, batch, candidates[:, :candidate_count], k)
        if depth == len(vectors):
            break
        # The worst candidate stands for every row that was not fetched: none of them may reach the k-th score.
        unsure = rough_scores[:, -1] + error >= scores[open_queries, -1]
        open_queries = open_queries[unsure]
        depth *= 4
    return scores, rows


def best_of(scores: Sequence[Any], rows: Sequence[Rows], k: int) -> tuple[Any, Rows]:
    """Return the `k` best of several rankings of the same queries, each `[n, any]`, best first, equal scores by row."""
    all_scores, all_rows = np.concatenate(scores, axis=1), np.concatenate(rows, axis=1)
    order = np.lexsort((all_rows, -all_scores), axis=-1)[:, :k]
    return np.take_along_axis(all_scores, order, axis=-1), np.take_along_axis(all_rows, order, axis=-1)


def order_candidates(vectors: StoredVectors, queries: Vectors, candidates: Rows, k: int) -> tuple[Scores, Rows]:
    """Score each query's candidate rows `[n, m]`, `m >= k`, in float64 and return the `k` best. A row of -1 is no
    candidate.

    Where fewer than `k` candidates are real, the last scores are minus infinity and the last rows -1.
    """
    scores = np.empty((len(queries), k), dtype=np.float64)
    rows = np.empty((len(queries), k), dtype=np.int64)
    width = candidates.shape[1] * vectors.shape[1] * 8
    step = max(1, _GATHER_BYTES // width)
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        part_rows = candidates[part]
        part_vectors = np.asarray(vectors[part_rows], dtype=np.float64)
        exact_scores = (part_vectors * queries[part, None, :]).sum(axis=-1)
        exact_scores[part_rows < 0] = -np.inf
        scores[part], rows[part] = best_of([exact_scores], [part_rows], k)
    return scores, rows


def load_faiss() -> Any:
    """Import the FAISS module; raises `EngineError` with the install line where it is missing."""
    try:
        import faiss
    except ModuleNotFoundError:
        raise EngineError("dense retrieval needs faiss-cpu: pip install 'medexam[retrieval]'") from None
    return faiss
