"""The rows of an index, and inner-product search of its vectors by FAISS.

FAISS's scores are in float32: they differ in the last digits with the number of queries, and among equal scores any is
kept. So a few more candidates than asked are taken, those that can matter are scored again in float64 one by one, and
ordered by score and then by place in the corpus; where a tie reaches beyond the candidates, more are fetched. Rankings
then do not depend on which other queries were asked, nor on the size of a block. An approximate index proposes
candidates that are scored in the same way.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.errors import IndexBuildError
from medexam.files import whole_file
from medexam.retrievers.base import import_library

Vectors = NDArray[np.float32]
Scores = NDArray[np.float64]
Rows = NDArray[np.int64]

VECTOR = "vector"
"""The column of the vectors, float32 of a fixed length, beside those of the passages."""
PART_BYTES = 1 << 29
"""Up to as much, vectors stay in memory between searches; more are read in blocks by every search."""
_BLOCK_BYTES = 1 << 23
_MARGIN = 16
"""How many candidates more than asked for."""
_ROUNDING = 1e-6
"""Error of a float32 inner product, as a share of the product of the two lengths."""
_TRAINING_BYTES = 1 << 30
"""The most that the vectors may take on which an approximate index is trained."""
_POOL = 10
"""Candidates of an approximate index for each passage that is asked for."""
_SMALLEST_POOL = 100


class StoredVectors:
    """The vectors of an index's data set."""

    def __init__(self, rows: Any, part_bytes: int = PART_BYTES) -> None:
        """Take a `datasets.Dataset` with the column `vector`."""
        self._rows = rows.select_columns([VECTOR])
        self._arrays = self._rows.with_format("numpy")
        self.shape: tuple[int, int] = (len(rows), rows.features[VECTOR].length)
        self._step = max(1, min(_BLOCK_BYTES, part_bytes) // (self.shape[1] * 4))
        self._is_small = len(rows) * self.shape[1] * 4 <= part_bytes
        self._memory: Vectors | None = None
        """All vectors, once they are searched, if they are small."""
        self._longest: float | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Rows) -> Vectors:
        """Read the vectors of rows of any shape `[...]`, as `[..., dimension]`; -1 is the last row."""
        if self._memory is not None:
            return self._memory[rows]
        unique, inverse = np.unique(rows % len(self), return_inverse=True)
        vectors: Vectors = self._arrays[unique][VECTOR]
        return vectors[inverse.reshape(rows.shape)]

    def find(self, queries: Vectors, depth: int) -> tuple[Vectors, Rows, float]:
        """Find FAISS's best rows of each query, `[n, depth]`, best first, with its scores and the longest length."""
        faiss = import_library("faiss")
        if self._is_small and self._memory is None:
            self._memory = np.concatenate([block for _, block in self.blocks()])
        if self._longest is None:
            squares = (float(np.einsum("ij,ij->i", block, block).max()) for _, block in self.blocks())
            self._longest = math.sqrt(max(squares))
        heap = faiss.ResultHeap(len(queries), depth, keep_max=True)
        for start, block in self.blocks():
            scores, rows = faiss.knn(queries, block, min(depth, len(block)), metric=faiss.METRIC_INNER_PRODUCT)
            heap.add_result(scores, rows + start)
        heap.finalize()
        return heap.D, heap.I, self._longest

    def blocks(self) -> Iterator[tuple[int, Vectors]]:
        """Yield blocks of consecutive vectors, each after the number of its first row; one of all, if in memory."""
        if self._memory is not None:
            yield 0, self._memory
            return
        for start in range(0, len(self), self._step):
            column = self._rows.data.fast_slice(start, self._step).column(VECTOR).combine_chunks()
            yield start, column.flatten().to_numpy().reshape(len(column), -1)


def search_exhaustively(vectors: StoredVectors, queries: Vectors, k: int) -> tuple[Scores, Rows]:
    """Return scores and rows `[n, k]` of each query's `k` best rows, best first, equal scores in the order of rows.

    `queries` is `[n, d]`; `1 <= k <= len(vectors)`.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    scores = np.empty((len(queries), k), dtype=np.float64)
    rows = np.empty((len(queries), k), dtype=np.int64)
    open_queries = np.arange(len(queries))
    depth = k + _MARGIN
    while len(open_queries):
        depth = min(depth, len(vectors))
        batch = queries[open_queries]
        rough_scores, candidates, longest = vectors.find(batch, depth)
        error = 2 * _ROUNDING * np.linalg.norm(batch, axis=1) * longest
        candidate_count = (rough_scores >= rough_scores[:, k - 1, None] - error[:, None]).sum(axis=1).max()
        scores[open_queries], rows[open_queries] = _order(vectors, batch, candidates[:, :candidate_count], k)
        if depth == len(vectors):
            break
        # The worst candidate stands for every row that was not fetched: none of them may reach the k-th score.
        unsure = rough_scores[:, -1] + error >= scores[open_queries, -1]
        open_queries = open_queries[unsure]
        depth *= 4
    return scores, rows


def _order(vectors: StoredVectors, queries: Vectors, candidates: Rows, k: int) -> tuple[Scores, Rows]:
    """Score each query's candidate rows `[n, m]`, `m >= k`, in float64 and return the `k` best.

    A row of -1 is no candidate; where fewer than `k` are real, the last scores are minus infinity and the last rows -1.
    """
    scores = np.empty((len(queries), k), dtype=np.float64)
    rows = np.empty((len(queries), k), dtype=np.int64)
    step = max(1, _BLOCK_BYTES // (candidates.shape[1] * vectors.shape[1] * 8))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        part_rows = candidates[part]
        part_vectors = np.asarray(vectors[part_rows], dtype=np.float64)
        exact_scores = (part_vectors * queries[part, None, :]).sum(axis=-1)
        exact_scores[part_rows < 0] = -np.inf
        order = np.lexsort((part_rows, -exact_scores), axis=-1)[:, :k]
        scores[part], rows[part] = (np.take_along_axis(values, order, axis=-1) for values in (exact_scores, part_rows))
    return scores, rows


def make_structure(factory: str, parameters: str, dimension: int) -> Any:
    """Make an empty index by `faiss.index_factory`, under parameters of `faiss.ParameterSpace` such as `nprobe=64`.

    Raises `IndexBuildError` if FAISS refuses one of them.
    """
    faiss = import_library("faiss")
    with _faiss_errors(f"FAISS makes no index {factory!r} of {dimension} dimensions under {parameters!r}"):
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
        faiss.ParameterSpace().set_index_parameters(index, parameters)
    return index


def build_structure(index: Any, vectors: StoredVectors, target: Path) -> None:
    """Fill an index that `make_structure` made with the vectors, and write it, parameters included.

    It is trained on rows at equal distances, so that the same vectors are always trained in the same way. Raises
    `IndexBuildError` where the vectors are too few, and `OSError`.
    """
    count = len(vectors)
    if not index.is_trained:
        points = vectors[np.linspace(0, count - 1, min(count, _TRAINING_BYTES // (index.d * 4))).astype(np.int64)]
        with _faiss_errors(f"the index cannot be trained on {count:,} passages"):
            index.train(points)
    for _, block in vectors.blocks():
        index.add(block)
    with whole_file(target) as draft:
        try:
            import_library("faiss").write_index(index, str(draft))
        except RuntimeError as error:
            raise OSError(str(error).splitlines()[0]) from error


def search_structure(index: Any, vectors: StoredVectors, queries: Vectors, k: int) -> tuple[Scores, Rows]:
    """Return what `search_exhaustively` returns, from the candidates of an approximate index.

    A query for which it proposes fewer than `k` rows is searched exhaustively.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    _, candidates = index.search(queries, min(len(vectors), max(_POOL * k, _SMALLEST_POOL)))
    scores, rows = _order(vectors, queries, candidates, k)
    short = np.flatnonzero(rows[:, -1] < 0)
    if len(short):
        scores[short], rows[short] = search_exhaustively(vectors, queries[short], k)
    return scores, rows


@contextmanager
def _faiss_errors(what: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise IndexBuildError(
            f"{what} ({str(error).splitlines()[0].rpartition(': ')[2]}): name another, or none for exact search"
        ) from None
