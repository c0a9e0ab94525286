"""Exact inner-product search over vectors on disk, block by block, with repeatable scores and ties.

FAISS finds the candidates: its scores are in float32 and differ in the last digits with the number of queries, and
among equal scores it keeps any. So a few more candidates than asked are taken, scored again in float64 one by one, and
ordered by score and then by place in the corpus; where a tie reaches beyond the candidates, more are fetched. Rankings
then do not depend on which other queries were asked, nor on the block size.
"""

from typing import TYPE_CHECKING, Any

from medexam.errors import EngineError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Scores = NDArray[np.float64]
    Rows = NDArray[np.int64]

BLOCK_BYTES = 1 << 27
"""How much of the vectors is searched at a time."""
MARGIN = 16
"""How many candidates more than asked for."""
_GATHER_BYTES = 1 << 26
_ROUNDING = 1e-6
"""Error of a float32 inner product, as a share of the product of the two lengths."""


def search_exhaustively(
    vectors: "Vectors", queries: "Vectors", k: int, block_bytes: int = BLOCK_BYTES
) -> "tuple[Scores, Rows]":
    """Scores and rows `[n, k]` of the `k` best rows of each query, best first, equal scores in the order of rows.

    `vectors` is `[count, d]` and may be a memory map larger than the memory; `queries` is `[n, d]`; `1 <= k <= count`.
    """
    import numpy as np

    scores = np.empty((len(queries), k), dtype=np.float64)
    rows = np.empty((len(queries), k), dtype=np.int64)
    open_queries = np.arange(len(queries))
    wanted = k + MARGIN
    while len(open_queries):
        wanted = min(wanted, len(vectors))
        asked = queries[open_queries]
        rough, candidates = _candidates(vectors, asked, wanted, block_bytes)
        scores[open_queries], rows[open_queries] = order_candidates(vectors, asked, candidates, k)
        if wanted == len(vectors):
            break
        lengths = np.linalg.norm(asked, axis=1) * _longest(vectors, candidates)
        # The worst candidate stands for every row that was not fetched: none of them may reach the k-th score.
        unsure = rough.min(axis=1) + 2 * _ROUNDING * lengths >= scores[open_queries, -1]
        open_queries = open_queries[unsure]
        wanted *= 4
    return scores, rows


def order_candidates(vectors: "Vectors", queries: "Vectors", candidates: "Rows", k: int) -> "tuple[Scores, Rows]":
    """The `k` best of each query's candidate rows `[n, m]`, `m >= k`, scored in float64; a row of -1 is no candidate.

    Where fewer than `k` candidates are real, the last scores are minus infinity and the last rows -1.
    """
    import numpy as np

    scores = np.empty((len(queries), k), dtype=np.float64)
    rows = np.empty((len(queries), k), dtype=np.int64)
    width = candidates.shape[1] * vectors.shape[1] * 8
    step = max(1, _GATHER_BYTES // width)
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        found = candidates[part]
        gathered = np.asarray(vectors[found], dtype=np.float64)
        exact = (gathered * queries[part, None, :]).sum(axis=-1)
        exact[found < 0] = -np.inf
        order = np.lexsort((found, -exact), axis=-1)[:, :k]
        scores[part] = np.take_along_axis(exact, order, axis=-1)
        rows[part] = np.take_along_axis(found, order, axis=-1)
    return scores, rows


def load_faiss() -> Any:
    """The FAISS module; raises `EngineError` with the install line where it is missing."""
    try:
        import faiss
    except ModuleNotFoundError:
        raise EngineError("dense retrieval needs faiss-cpu: pip install 'medexam[retrieval]'") from None
    return faiss


def _candidates(
    vectors: "Vectors", queries: "Vectors", wanted: int, block_bytes: int
) -> "tuple[NDArray[np.float32], Rows]":
    """FAISS's best rows of each query over all blocks, `[n, wanted]`, with its scores."""
    import numpy as np

    faiss = load_faiss()
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    heap = faiss.ResultHeap(len(queries), wanted, keep_max=True)
    block = max(1, block_bytes // (vectors.shape[1] * 4))
    for start in range(0, len(vectors), block):
        part = np.asarray(vectors[start : start + block])
        scores, rows = faiss.knn(queries, part, min(wanted, len(part)), metric=faiss.METRIC_INNER_PRODUCT)
        heap.add_result(scores, rows + start)
    heap.finalize()
    return heap.D, heap.I


def _longest(vectors: "Vectors", candidates: "Rows") -> float:
    """The length of the longest candidate; the rounding error grows with it."""
    import numpy as np

    unique = np.unique(candidates)
    step = max(1, _GATHER_BYTES // (vectors.shape[1] * 4))
    parts = (unique[start : start + step] for start in range(0, len(unique), step))
    return max(float(np.linalg.norm(np.asarray(vectors[part]), axis=1).max()) for part in parts)
