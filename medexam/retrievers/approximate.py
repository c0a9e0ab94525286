"""Approximate search for corpora too large for a look at every vector: a graph (HNSW) or quantised cells (IVF-PQ).

The structure proposes candidates; they are scored anew with the exact vectors on disk, so the scores are those of the
exhaustive search and only the choice of passages is approximate. How much of the exhaustive ranking is found is
measured when the index is built.

A corpus too large to be held is cut into segments of consecutive rows, each with a structure of its own, so that
building needs the memory of one segment. A search takes the best candidates of all segments.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from math import isqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np

from medexam.errors import IndexBuildError, IndexStaleError
from medexam.files import whole_file
from medexam.library_logging import quiet_datasets
from medexam.retrievers.exhaustive import (
    RoughScores,
    Rows,
    Scores,
    StoredVectors,
    best_of,
    load_faiss,
    order_candidates,
    search_exhaustively,
)
from medexam.retrievers.index_manifest import STRUCTURE
from medexam.retrievers.passage_rows import Vectors, read_vectors

ApproximateKind = Literal["hnsw", "ivfpq"]

HNSW_LINKS = 32
HNSW_BUILD_WIDTH = 200
HNSW_SEARCH_WIDTH = 128
PQ_BITS = 8
POINTS_PER_CENTROID = 39
"""FAISS trains no centroid well on fewer points."""
IVFPQ_MINIMUM = POINTS_PER_CENTROID * 2**PQ_BITS
_TRAINING_POINTS_PER_CENTROID = 64
TRAINING_BYTES = 1 << 30
"""The most that the vectors may take on which cells are trained."""
_POOL = 10
"""Candidates taken for each passage that is asked for, and scored exactly."""
_SMALLEST_POOL = 100


@dataclass
class Segments:
    """How large the structures are that a corpus is cut into."""

    bytes: int = 1 << 29
    """The most that the structure of a segment takes; while it grows, FAISS holds up to twice as much."""


SEGMENTS = Segments()


def choose_parameters(kind: ApproximateKind, count: int, dimension: int) -> dict[str, int]:
    """Choose the settings of a structure over `count` vectors; raises `IndexBuildError` if they are too few for it.

    `segment` is the rows of a segment; it is left out where one holds them all.
    """
    if kind == "hnsw":
        parameters = {"links": HNSW_LINKS, "build_width": HNSW_BUILD_WIDTH, "search_width": HNSW_SEARCH_WIDTH}
        # The lowest level has twice the links, of 4 bytes each; the higher ones together have few.
        row_bytes = dimension * 4 + HNSW_LINKS * 2 * 4 + 24
    elif count < IVFPQ_MINIMUM:
        raise IndexBuildError(
            f"an ivfpq index is trained on at least {IVFPQ_MINIMUM:,} passages and the corpus has {count:,}: "
            "use --kind flat or hnsw"
        )
    else:
        points = min(count, TRAINING_BYTES // (dimension * 4))
        cells = min(4 * isqrt(count), points // POINTS_PER_CENTROID)
        parts = next(parts for parts in range(max(1, dimension // 4), 0, -1) if dimension % parts == 0)
        parameters = {"cells": cells, "probes": max(16, cells // 8), "parts": parts, "bits": PQ_BITS}
        row_bytes = parts + 8
    segment = max(1, SEGMENTS.bytes // row_bytes)
    return parameters if count <= segment else {**parameters, "segment": segment}


def structure_files(parameters: dict[str, int], count: int) -> list[str]:
    """Return the names of the files of a structure over `count` vectors, in the order of its segments."""
    stem, _, suffix = STRUCTURE.partition(".")
    number = len(_bounds(parameters, count)) - 1
    return [STRUCTURE] if number == 1 else [f"{stem}-{place:05d}.{suffix}" for place in range(number)]


def build_structure(
    kind: ApproximateKind, parameters: dict[str, int], paths: Sequence[Path], count: int, dimension: int, folder: Path
) -> None:
    """Build the structure over the vectors in Arrow files and write its own to `folder`; raises `OSError`.

    Cells are trained once, on rows at equal distances, so that the same vectors are always trained in the same way.
    FAISS is called here and not by `datasets`, which maps the files: their pages would count as memory, 1 GB more for 4
    million vectors of 64 dimensions.
    """
    faiss = load_faiss()
    template = _train(parameters, paths, count, dimension) if kind == "ivfpq" else None
    segment_parts = groupby(_cut(read_vectors(paths), parameters.get("segment", count)), lambda item: item[0])
    for name, (_, parts) in zip(structure_files(parameters, count), segment_parts, strict=True):
        if template is not None:
            index = faiss.clone_index(template)
        else:
            # The metric goes to the constructor: set afterwards, the graph is silently built for another one.
            index = faiss.IndexHNSWFlat(dimension, parameters["links"], faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = parameters["build_width"]
        for _, part in parts:
            index.add(part)
        with whole_file(folder / name) as draft:
            try:
                faiss.write_index(index, str(draft))
            except RuntimeError as error:
                raise OSError(str(error).splitlines()[0]) from error


def measure_recall(
    kind: ApproximateKind,
    parameters: dict[str, int],
    paths: Sequence[Path],
    count: int,
    folder: Path,
    queries: Vectors,
    depth: int,
) -> float:
    """Measure the mean share of each query's `depth` best rows that a structure finds.

    What it proposes is scored exactly in a search, so a best row among the candidates is found.
    """
    faiss = load_faiss()
    heap = faiss.ResultHeap(len(queries), depth, keep_max=True)
    first = 0
    for part in read_vectors(paths):
        scores, places = faiss.knn(queries, part, min(depth, len(part)), metric=faiss.METRIC_INNER_PRODUCT)
        heap.add_result(scores, places + first)
        first += len(part)
    heap.finalize()
    searches = (_open(kind, parameters, path).search for path in _paths(parameters, count, folder))
    candidates = _find(kind, parameters, count, searches, queries, _pool_size(depth, count))
    return sum(
        len(set(query_rows) & set(best_rows)) / depth for query_rows, best_rows in zip(candidates, heap.I, strict=True)
    ) / len(queries)


def _cut(parts: Iterator[Vectors], segment: int) -> Iterator[tuple[int, Vectors]]:
    """Cut parts so that each lies in one segment of rows, whose number stands before it."""
    row = 0
    for part in parts:
        while len(part):
            piece = part[: segment - row % segment]
            yield row // segment, piece
            row, part = row + len(piece), part[len(piece) :]


def _train(parameters: dict[str, int], paths: Sequence[Path], count: int, dimension: int) -> Any:
    """Return a trained index of quantised cells that is empty."""
    faiss = load_faiss()
    recipe = f"IVF{parameters['cells']},PQ{parameters['parts']}x{parameters['bits']}"
    index = faiss.index_factory(dimension, recipe, faiss.METRIC_INNER_PRODUCT)
    target_size = _TRAINING_POINTS_PER_CENTROID * max(parameters["cells"], 2 ** parameters["bits"])
    size = min(count, target_size, max(IVFPQ_MINIMUM, TRAINING_BYTES // (dimension * 4)))
    rows = np.linspace(0, count - 1, size).astype(np.int64)
    points = np.empty((size, dimension), dtype=np.float32)
    first = 0
    for part in read_vectors(paths):
        place, end = np.searchsorted(rows, [first, first + len(part)])
        points[place:end] = part[rows[place:end] - first]
        first += len(part)
    index.train(points)
    return index


def _bounds(parameters: dict[str, int], count: int) -> list[int]:
    """Return the first row of each segment, and the end of the last."""
    return [*range(0, count, parameters.get("segment", count)), count]


def _paths(parameters: dict[str, int], count: int, folder: Path) -> list[Path]:
    return [folder / name for name in structure_files(parameters, count)]


def _pool_size(k: int, count: int) -> int:
    """Return how many candidates are taken for `k` passages."""
    return min(count, max(_POOL * k, _SMALLEST_POOL))


class ApproximateSearch:
    """Searches a structure that `build_structure` wrote, which `datasets` holds beside the rows."""

    def __init__(
        self, kind: ApproximateKind, parameters: dict[str, int], rows: Any, vectors: StoredVectors, folder: Path
    ) -> None:
        """Open the structure; raises `IndexStaleError` if a file of it is not of these vectors."""
        self._vectors = vectors
        self._kind = kind
        self._parameters = parameters
        count, dimension = vectors.shape
        self._searches = []
        for path, (start, stop) in zip(
            _paths(parameters, count, folder), pairwise(_bounds(parameters, count)), strict=True
        ):
            index = _open(kind, parameters, path)
            if index.ntotal != stop - start or index.d != dimension:
                raise IndexStaleError(f"{path} is not of these vectors; build the index again")
            # No vectors are added: the index holds them, and a mapped one stays mapped.
            with quiet_datasets():
                rows.add_faiss_index_from_external_arrays(
                    np.empty((0, dimension), dtype=np.float32), index_name=path.name, custom_index=index
                )
            self._searches.append(partial(rows.search_batch, path.name))

    def search(self, queries: Vectors, k: int) -> tuple[Scores, Rows]:
        """Return scores and rows `[n, k]`, best first, equal scores in the order of rows.

        A query for which the structure finds fewer than `k` rows is searched exhaustively.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        count = len(self._vectors)
        candidates = _find(self._kind, self._parameters, count, self._searches, queries, _pool_size(k, count))
        scores, rows = order_candidates(self._vectors, queries, candidates, k)
        short_rows = np.flatnonzero(rows[:, -1] < 0)
        if len(short_rows):
            scores[short_rows], rows[short_rows] = search_exhaustively(self._vectors, queries[short_rows], k)
        return scores, rows


def _find(
    kind: ApproximateKind,
    parameters: dict[str, int],
    count: int,
    searches: Iterable[Callable[..., tuple[RoughScores, Rows]]],
    queries: Vectors,
    pool: int,
) -> Rows:
    """Find the `pool` best rows of all segments by the structure's own scores, `[n, pool]`; the others are -1."""
    faiss = load_faiss()
    if kind == "hnsw":
        settings = faiss.SearchParametersHNSW(efSearch=max(parameters["search_width"], pool))
    else:
        settings = faiss.SearchParametersIVF(nprobe=parameters["probes"])
    scores = np.full((len(queries), pool), -np.inf, dtype=np.float32)
    rows: Rows = np.full((len(queries), pool), -1, dtype=np.int64)
    for (start, stop), search in zip(pairwise(_bounds(parameters, count)), searches, strict=True):
        segment_scores, places = search(queries, min(pool, stop - start), params=settings)
        segment_scores[places < 0] = -np.inf
        scores, rows = best_of([scores, segment_scores], [rows, np.where(places < 0, -1, places + start)], pool)
    return rows


def _open(kind: ApproximateKind, parameters: dict[str, int], path: Path) -> Any:
    """Open a file of a structure; raises `IndexStaleError`."""
    faiss = load_faiss()
    # A single graph is read into memory, where it is fastest; of several, each page when it is needed.
    graph_flag = faiss.IO_FLAG_MMAP_IFC if "segment" in parameters else 0
    try:
        return faiss.read_index(str(path), graph_flag if kind == "hnsw" else faiss.IO_FLAG_MMAP)
    except RuntimeError as error:
        raise IndexStaleError(f"{path} cannot be read; build the index again") from error
