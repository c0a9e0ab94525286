"""The rows of an index: passages and vectors in Arrow files, and inner-product search of the vectors by FAISS.

Files that an index is built from are read and not mapped, because the pages of a mapped file count as memory of the
process that touched them: an index of any size is built in the memory of one block.

Exact search: FAISS looks at all vectors, or at one block of them after the other if they are large. Its scores are in
float32: they differ in the last digits with the number of queries, and among equal scores any is kept. So a few more
candidates than asked are taken, those that can matter are scored again in float64 one by one, and ordered by score and
then by place in the corpus; where a tie reaches beyond the candidates, more are fetched. Rankings then do not depend on
which other queries were asked, nor on the size of a block.

Approximate search: an index that `faiss.index_factory` makes of its string proposes candidates, which are scored in the
same way. So scores are those of the exact search, and only the choice of passages is approximate.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.errors import EngineError, IndexBuildError, IndexStaleError
from medexam.files import whole_file, write_whole
from medexam.retrievers.base import Passage

Vectors = NDArray[np.float32]
Scores = NDArray[np.float64]
RoughScores = NDArray[np.float32]
Rows = NDArray[np.int64]

VECTOR = "vector"
"""The column of the vectors, float32 of a fixed length, beside `id`, `title`, `content` and `source`."""
STATE = "state.json"
INFO = "dataset_info.json"
END = b"\xff\xff\xff\xff\0\0\0\0"
"""How a stream of Arrow ends."""
_TEXTS = ("id", "title", "content", "source")
PART_BYTES = 1 << 29
"""Up to as much, vectors stay in memory between searches; more are read in blocks by every search."""
MARGIN = 16
"""How many candidates more than asked for."""
_GATHER_BYTES = 1 << 23
_JOINED_QUERIES = 20
"""From as many queries on FAISS multiplies matrices, for which blocks should be large."""
_ROUNDING = 1e-6
"""Error of a float32 inner product, as a share of the product of the two lengths."""
_TRAINING_BYTES = 1 << 30
"""The most that the vectors may take on which an approximate index is trained."""
_POOL = 10
"""Candidates of an approximate index for each passage that is asked for."""
_SMALLEST_POOL = 100


def load_datasets() -> Any:
    """Import `datasets`; raises `EngineError` with the install line where it is missing."""
    try:
        import datasets
    except ModuleNotFoundError:
        raise EngineError("dense retrieval needs datasets: pip install 'medexam[retrieval]'") from None
    return datasets


def row_schema(dimension: int | None) -> Any:
    """Build the Arrow schema of rows with vectors of this length, as `datasets` writes it; None: without vectors."""
    import pyarrow as pa

    fields = [(name, pa.string()) for name in _TEXTS]
    if dimension is None:
        return pa.schema(fields)
    return (
        load_datasets()
        .Features.from_arrow_schema(pa.schema([*fields, (VECTOR, pa.list_(pa.float32(), dimension))]))
        .arrow_schema
    )


def make_batch(passages: Sequence[Passage], vectors: Vectors | None, schema: Any) -> Any:
    """Make an Arrow batch of passages and their vectors `[n, dimension]`."""
    import pyarrow as pa

    columns: list[Any] = [pa.array([getattr(passage, name) for passage in passages], pa.string()) for name in _TEXTS]
    if vectors is not None:
        columns.append(pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]))
    return pa.record_batch(columns, schema=schema)


def write_passages(passages: Iterable[Passage], path: Path, block: int) -> None:
    """Write passages without vectors, `block` to a batch, whole or not at all; raises `OSError`."""
    import pyarrow as pa

    schema = row_schema(None)
    passages = iter(passages)
    with whole_file(path) as draft, pa.OSFile(str(draft), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
        while part := list(islice(passages, block)):
            stream.write_batch(make_batch(part, None, schema))


def read_passages(path: Path) -> Iterator[list[Passage]]:
    """Read the passages of a file batch by batch; raises `OSError`."""
    for batch in _batches([path]):
        yield to_passages(batch.to_pydict())


def read_vectors(paths: Sequence[Path]) -> Iterator[Vectors]:
    """Read the vectors of several files, one behind the other, batch by batch as `[n, dimension]`."""
    for batch in _batches(paths):
        column = batch.column(VECTOR)
        yield column.flatten().to_numpy().reshape(len(column), -1)


def to_passages(columns: dict[str, Any]) -> list[Passage]:
    """Make passages of columns."""
    return [Passage(*texts) for texts in zip(*(columns[name] for name in _TEXTS), strict=True)]


def write_description(folder: Path, files: Sequence[str], dimension: int, fingerprint: str) -> None:
    """Write what `datasets.load_from_disk` needs to open these files of a folder as one data set; raises `OSError`."""
    datasets = load_datasets()
    datasets.DatasetInfo(features=datasets.Features.from_arrow_schema(row_schema(dimension))).write_to_directory(folder)
    state: dict[str, Any] = {
        "_data_files": [{"filename": name} for name in files],
        "_fingerprint": fingerprint,
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    write_whole(folder / STATE, json.dumps(state, indent=2))


def _batches(paths: Sequence[Path]) -> Iterator[Any]:
    import pyarrow as pa

    for path in paths:
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            yield from stream


class StoredVectors:
    """The vectors of an index's data set."""

    def __init__(self, rows: Any, part_bytes: int = PART_BYTES) -> None:
        """Take a `datasets.Dataset` with the column `vector`."""
        self._rows = rows.select_columns([VECTOR])
        self._arrays = self._rows.with_format("numpy")
        self.shape: tuple[int, int] = (len(rows), rows.features[VECTOR].length)
        self._step = max(1, min(_GATHER_BYTES, part_bytes) // (self.shape[1] * 4))
        self._is_small = len(rows) * self.shape[1] * 4 <= part_bytes
        self._kept: Vectors | None = None
        """All vectors, once they are searched, if they are small."""
        self._longest: float | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Rows) -> Vectors:
        """Read the vectors of rows of any shape `[...]`, as `[..., dimension]`; -1 is the last row."""
        if self._kept is not None:
            return self._kept[rows]
        unique, inverse = np.unique(rows % len(self), return_inverse=True)
        vectors: Vectors = self._arrays[unique][VECTOR]
        return vectors[inverse.reshape(rows.shape)]

    def find(self, queries: Vectors, depth: int) -> tuple[RoughScores, Rows, float]:
        """Find FAISS's best rows of each query, `[n, depth]`, best first, with its scores and the longest length."""
        faiss = load_faiss()
        if self._is_small and self._kept is None:
            self._kept = np.concatenate([block for _, block in self._blocks()])
        if self._longest is None:
            squares = (float(np.einsum("ij,ij->i", block, block).max()) for _, block in self._blocks())
            self._longest = math.sqrt(max(squares))
        heap = faiss.ResultHeap(len(queries), depth, keep_max=True)
        for start, block in self._blocks(joined=len(queries) >= _JOINED_QUERIES):
            scores, rows = faiss.knn(queries, block, min(depth, len(block)), metric=faiss.METRIC_INNER_PRODUCT)
            heap.add_result(scores, rows + start)
        heap.finalize()
        return heap.D, heap.I, self._longest

    def _blocks(self, *, joined: bool = False) -> Iterator[tuple[int, Vectors]]:
        """Yield blocks of consecutive vectors, each after the number of its first row; one of all, if they are kept.

        `joined`: batches of the file are copied into blocks of 8 MB. A block that many queries are compared with is
        worth the copy.
        """
        if self._kept is not None:
            yield 0, self._kept
            return
        dimension = self.shape[1]
        for start in range(0, len(self), self._step):
            parts = [
                # `flatten` computes what these two lines look up.
                chunk.values.to_numpy()[chunk.offset * dimension : (chunk.offset + len(chunk)) * dimension]
                for chunk in self._rows.data.fast_slice(start, self._step).column(VECTOR).chunks
            ]
            row = start
            for block in [np.concatenate(parts)] if joined else parts:
                yield row, block.reshape(-1, dimension)
                row += len(block) // dimension


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
        order = np.lexsort((part_rows, -exact_scores), axis=-1)[:, :k]
        scores[part], rows[part] = (np.take_along_axis(values, order, axis=-1) for values in (exact_scores, part_rows))
    return scores, rows


def make_structure(factory: str, parameters: str, dimension: int) -> Any:
    """Make an empty index by `faiss.index_factory`, under parameters of `faiss.ParameterSpace` such as `nprobe=64`.

    Raises `IndexBuildError` if FAISS refuses one of them.
    """
    faiss = load_faiss()
    with _faiss_errors(f"FAISS makes no index {factory!r} of vectors of {dimension} dimensions"):
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    with _faiss_errors(f"FAISS takes no parameters {parameters!r} for an index {factory!r}"):
        faiss.ParameterSpace().set_index_parameters(index, parameters)
    return index


def build_structure(index: Any, paths: Sequence[Path], count: int, target: Path) -> None:
    """Fill an index that `make_structure` made with the vectors of Arrow files, and write it, parameters included.

    It is trained on rows at equal distances, so that the same vectors are always trained in the same way. FAISS is
    called here and not by `datasets`, which maps the files: their pages would count as memory. Raises
    `IndexBuildError` where the vectors are too few, and `OSError`.
    """
    faiss = load_faiss()
    if not index.is_trained:
        rows = np.linspace(0, count - 1, min(count, _TRAINING_BYTES // (index.d * 4))).astype(np.int64)
        points, first = np.empty((len(rows), index.d), dtype=np.float32), 0
        for part in read_vectors(paths):
            start, end = np.searchsorted(rows, [first, first + len(part)])
            points[start:end] = part[rows[start:end] - first]
            first += len(part)
        with _faiss_errors(f"the index cannot be trained on {count:,} passages"):
            index.train(points)
    for part in read_vectors(paths):
        index.add(part)
    with whole_file(target) as draft:
        try:
            faiss.write_index(index, str(draft))
        except RuntimeError as error:
            raise OSError(str(error).splitlines()[0]) from error


def open_structure(path: Path, vectors: StoredVectors) -> Any:
    """Open the index that `build_structure` wrote; raises `IndexStaleError` if it is not of these vectors."""
    faiss = load_faiss()
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    except RuntimeError as error:
        raise IndexStaleError(f"{path} cannot be read; build the index again") from error
    if (index.ntotal, index.d) != vectors.shape:
        raise IndexStaleError(f"{path} is not of these vectors; build the index again")
    return index


def search_structure(index: Any, vectors: StoredVectors, queries: Vectors, k: int) -> tuple[Scores, Rows]:
    """Return what `search_exhaustively` returns, from the candidates of an approximate index.

    A query for which it proposes fewer than `k` rows is searched exhaustively.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    _, candidates = index.search(queries, min(len(vectors), max(_POOL * k, _SMALLEST_POOL)))
    scores, rows = order_candidates(vectors, queries, candidates, k)
    short = np.flatnonzero(rows[:, -1] < 0)
    if len(short):
        scores[short], rows[short] = search_exhaustively(vectors, queries[short], k)
    return scores, rows


@contextmanager
def _faiss_errors(what: str) -> Iterator[None]:
    """Raise what FAISS raises as an `IndexBuildError`."""
    try:
        yield
    except RuntimeError as error:
        raise IndexBuildError(
            f"{what} ({str(error).splitlines()[0].rpartition(': ')[2]}): name another, or none for exact search"
        ) from None


def load_faiss() -> Any:
    """Import the FAISS module; raises `EngineError` with the install line where it is missing."""
    try:
        import faiss
    except ModuleNotFoundError:
        raise EngineError("dense retrieval needs faiss-cpu: pip install 'medexam[retrieval]'") from None
    return faiss
