"""Exact inner-product search over vectors on disk, block by block, with repeatable scores and ties.

Candidates are found in float32: for a few queries by FAISS, which reads the vectors once for each of them, and for
many by products in torch, whose linear algebra is several times as fast as that in the wheels of FAISS. Such scores
differ in the last digits with the number of queries, and among equal scores any is kept. So a few more candidates than
asked are taken, those that can matter are scored again in float64 one by one, and ordered by score and then by place in
the corpus; where a tie reaches beyond the candidates, more are fetched. Rankings then do not depend on which other
queries were asked, nor on the block size.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.errors import EngineError
from medexam.retrievers.vector_file import StoredVectors

Vectors = NDArray[np.float32]
Scores = NDArray[np.float64]
Rows = NDArray[np.int64]

BLOCK_BYTES = 1 << 24
"""How much of the vectors is searched at a time."""
MANY_QUERIES = 8
"""As many queries, or more, are multiplied with the vectors at once."""
MARGIN = 16
"""How many candidates more than asked for."""
_QUERY_ROWS = 1024
_GATHER_BYTES = 1 << 23
_ROUNDING = 1e-6
"""Error of a float32 inner product, as a share of the product of the two lengths."""


def search_exhaustively(
    vectors: Vectors, queries: Vectors, k: int, block_bytes: int = BLOCK_BYTES
) -> tuple[Scores, Rows]:
    """Return scores and rows `[n, k]` of each query's `k` best rows, best first, equal scores in the order of rows.

    `vectors` is `[count, d]` and may be a memory map larger than the memory; `queries` is `[n, d]`; `1 <= k <= count`.
    """
    scores = np.empty((len(queries), k), dtype=np.float64)
    rows = np.empty((len(queries), k), dtype=np.int64)
    open_queries = np.arange(len(queries))
    depth = k + MARGIN
    while len(open_queries):
        depth = min(depth, len(vectors))
        batch = queries[open_queries]
        find = _find_for_many if len(batch) >= MANY_QUERIES else _find_for_few
        rough_scores, candidates = find(vectors, batch, depth, block_bytes)
        error = 2 * _ROUNDING * np.linalg.norm(batch, axis=1) * _longest(vectors, candidates)
        candidate_count = (rough_scores >= rough_scores[:, k - 1, None] - error[:, None]).sum(axis=1).max()
        scores[open_queries], rows[open_queries] = order_candidates(vectors, batch, candidates[:, :candidate_count], k)
        if depth == len(vectors):
            break
        # The worst candidate stands for every row that was not fetched: none of them may reach the k-th score.
        unsure = rough_scores[:, -1] + error >= scores[open_queries, -1]
        open_queries = open_queries[unsure]
        depth *= 4
    return scores, rows


def search_parts(parts: "Iterable[tuple[int, Vectors]]", queries: Vectors, k: int) -> tuple[Scores, Rows]:
    """Search exhaustively over vectors that come part by part, each with the row of its first in the whole."""
    rankings = [(*search_exhaustively(part, queries, min(k, len(part))), first) for first, part in parts]
    return best_of([scores for scores, _, _ in rankings], [rows + first for _, rows, first in rankings], k)


def best_of(scores: Sequence[Scores], rows: Sequence[Rows], k: int) -> tuple[Scores, Rows]:
    """Return the `k` best of several rankings of the same queries, each `[n, any]`, best first, equal scores by row."""
    all_scores, all_rows = np.concatenate(scores, axis=1), np.concatenate(rows, axis=1)
    order = np.lexsort((all_rows, -all_scores), axis=-1)[:, :k]
    return np.take_along_axis(all_scores, order, axis=-1), np.take_along_axis(all_rows, order, axis=-1)


def order_candidates(
    vectors: Vectors | StoredVectors, queries: Vectors, candidates: Rows, k: int
) -> tuple[Scores, Rows]:
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
        order = np.lexsort((part_rows, -exact_scores), axis=-1)[:, :k]
        scores[part] = np.take_along_axis(exact_scores, order, axis=-1)
        rows[part] = np.take_along_axis(part_rows, order, axis=-1)
    return scores, rows


def load_faiss() -> Any:
    """Import the FAISS module; raises `EngineError` with the install line where it is missing."""
    try:
        import faiss
    except ModuleNotFoundError:
        raise EngineError("dense retrieval needs faiss-cpu: pip install 'medexam[retrieval]'") from None
    return faiss


def _find_for_few(
    vectors: Vectors, queries: Vectors, depth: int, block_bytes: int
) -> "tuple[NDArray[np.float32], Rows]":
    """Find FAISS's best rows of each query over all blocks, `[n, depth]`, best first, with its scores."""
    faiss = load_faiss()
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    heap = faiss.ResultHeap(len(queries), depth, keep_max=True)
    block = max(1, block_bytes // (vectors.shape[1] * 4))
    for start in range(0, len(vectors), block):
        part = np.asarray(vectors[start : start + block])
        scores, rows = faiss.knn(queries, part, min(depth, len(part)), metric=faiss.METRIC_INNER_PRODUCT)
        heap.add_result(scores, rows + start)
    heap.finalize()
    return heap.D, heap.I


def _find_for_many(
    vectors: Vectors, queries: Vectors, depth: int, block_bytes: int
) -> "tuple[NDArray[np.float32], Rows]":
    """Find the best rows of each query by products of blocks, `[n, depth]`, best first, with their float32 scores."""
    import torch

    block = min(len(vectors), max(1, block_bytes // (vectors.shape[1] * 4)))
    # Copies: torch takes no arrays that cannot be written to, and a mapped block is read from the disk once.
    query_tensor = torch.from_numpy(np.array(queries, dtype=np.float32))
    buffer = torch.empty((block, vectors.shape[1]))
    products = torch.empty(min(len(query_tensor), _QUERY_ROWS) * block)
    scores = torch.full((len(query_tensor), depth), -torch.inf)
    rows = torch.full((len(query_tensor), depth), -1)
    for start in range(0, len(vectors), block):
        part = buffer[: len(vectors) - start]
        part.numpy()[:] = vectors[start : start + block]
        for first in range(0, len(query_tensor), _QUERY_ROWS):
            query_slice = slice(first, first + _QUERY_ROWS)
            product = products[: len(query_tensor[query_slice]) * len(part)].view(-1, len(part))
            torch.mm(query_tensor[query_slice], part.T, out=product)
            block_scores, places = product.topk(min(depth, len(part)))
            scores[query_slice], order = torch.cat([scores[query_slice], block_scores], dim=1).topk(depth)
            rows[query_slice] = torch.cat([rows[query_slice], places + start], dim=1).gather(1, order)
    return scores.numpy(), rows.numpy()


def _longest(vectors: Vectors, candidates: Rows) -> float:
    """Return the length of the longest candidate, or of the longest row if many; the rounding error grows with it."""
    unique = np.unique(candidates)
    step = max(1, _GATHER_BYTES // (vectors.shape[1] * 4))
    if 4 * len(unique) > len(vectors):
        parts = (vectors[start : start + step] for start in range(0, len(vectors), step))
    else:
        parts = (vectors[unique[start : start + step]] for start in range(0, len(unique), step))
    return math.sqrt(max(float(np.einsum("ij,ij->i", part, part).max()) for part in parts))
