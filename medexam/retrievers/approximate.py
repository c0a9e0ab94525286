"""Approximate search for corpora too large for a look at every vector: a graph (HNSW) or quantised cells (IVF-PQ).

The structure proposes candidates; they are scored anew with the exact vectors on disk, so the scores are those of the
exhaustive search and only the choice of passages is approximate. How much of the exhaustive ranking is found is
measured when the index is built.

A corpus too large to be held is cut into segments of consecutive rows, each with a structure of its own, so that
building needs the memory of one segment. A search takes the best candidates of all segments.
"""

from collections.abc import Iterator
from itertools import pairwise
from math import isqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np

from medexam.errors import IndexBuildError, IndexStaleError
from medexam.files import whole_file
from medexam.retrievers.exhaustive import Rows, Scores, Vectors, load_faiss, order_candidates, search_parts
from medexam.retrievers.index_manifest import STRUCTURE
from medexam.retrievers.vector_file import StoredVectors

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
SEGMENT_BYTES = 1 << 29
"""The most that the structure of a segment takes; while it grows, FAISS holds up to twice as much."""
PART_BYTES = 1 << 25
"""How much of the vectors is read at a time."""
_POOL = 10
"""Candidates taken for each passage that is asked for, and scored exactly."""
_SMALLEST_POOL = 100


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
    segment = max(1, SEGMENT_BYTES // row_bytes)
    return parameters if count <= segment else {**parameters, "segment": segment}


def structure_files(parameters: dict[str, int], count: int) -> list[str]:
    """Return the names of the files of a structure over `count` vectors, in the order of its segments."""
    stem, _, suffix = STRUCTURE.partition(".")
    number = len(_bounds(parameters, count)) - 1
    return [STRUCTURE] if number == 1 else [f"{stem}-{place:05d}.{suffix}" for place in range(number)]


def build_structure(kind: ApproximateKind, parameters: dict[str, int], vectors: StoredVectors, folder: Path) -> None:
    """Build the structure over `vectors` and write its files to `folder`; raises `OSError` if that fails.

    Cells are trained once, on rows at equal distances, so that the same vectors are always trained in the same way.
    """
    faiss = load_faiss()
    template = _train(parameters, vectors) if kind == "ivfpq" else None
    segments = pairwise(_bounds(parameters, len(vectors)))
    for name, (start, stop) in zip(structure_files(parameters, len(vectors)), segments, strict=True):
        if template is not None:
            index = faiss.clone_index(template)
        else:
            # The metric goes to the constructor: set afterwards, the graph is silently built for another one.
            index = faiss.IndexHNSWFlat(vectors.shape[1], parameters["links"], faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = parameters["build_width"]
        for _, part in vectors.parts(PART_BYTES, start, stop):
            index.add(part)
        with whole_file(folder / name) as draft:
            try:
                faiss.write_index(index, str(draft))
            except RuntimeError as error:
                raise OSError(str(error).splitlines()[0]) from error


def _train(parameters: dict[str, int], vectors: StoredVectors) -> Any:
    """Return a trained index of quantised cells that is empty."""
    faiss = load_faiss()
    recipe = f"IVF{parameters['cells']},PQ{parameters['parts']}x{parameters['bits']}"
    index = faiss.index_factory(vectors.shape[1], recipe, faiss.METRIC_INNER_PRODUCT)
    target_size = _TRAINING_POINTS_PER_CENTROID * max(parameters["cells"], 2 ** parameters["bits"])
    size = min(len(vectors), target_size, max(IVFPQ_MINIMUM, TRAINING_BYTES // (vectors.shape[1] * 4)))
    index.train(vectors[np.linspace(0, len(vectors) - 1, size).astype(np.int64)])
    return index


def _bounds(parameters: dict[str, int], count: int) -> list[int]:
    """Return the first row of each segment, and the end of the last."""
    return [*range(0, count, parameters.get("segment", count)), count]


class ApproximateSearch:
    """Searches a structure that `build_structure` wrote.

    `hold=False` reads each segment anew for each search and lets it go at once, as building needs it.
    """

    def __init__(
        self,
        kind: ApproximateKind,
        parameters: dict[str, int],
        vectors: StoredVectors,
        folder: Path,
        *,
        hold: bool = True,
    ) -> None:
        self._vectors = vectors
        self._kind = kind
        self._parameters = parameters
        self._bounds = _bounds(parameters, len(vectors))
        self._paths = [folder / name for name in structure_files(parameters, len(vectors))]
        self._indexes = [self._open(place) for place in range(len(self._paths))] if hold else []

    def search(self, queries: Vectors, k: int) -> tuple[Scores, Rows]:
        """Return scores and rows `[n, k]`, best first, equal scores in the order of rows.

        A query for which the structure finds fewer than `k` rows is searched exhaustively.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        candidates = self._find(queries, min(len(self._vectors), max(_POOL * k, _SMALLEST_POOL)))
        scores, rows = order_candidates(self._vectors, queries, candidates, k)
        short_rows = np.flatnonzero(rows[:, -1] < 0)
        if len(short_rows):
            scores[short_rows], rows[short_rows] = self.search_all(queries[short_rows], k)
        return scores, rows

    def search_all(self, queries: Vectors, k: int) -> tuple[Scores, Rows]:
        """Return scores and rows `[n, k]` of the exhaustive search of the same vectors."""
        return search_parts(self._vectors.parts(PART_BYTES), queries, k)

    def _find(self, queries: Vectors, pool: int) -> Rows:
        """Find the `pool` best rows of all segments by the structure's own scores, `[n, pool]`; the others are -1."""
        faiss = load_faiss()
        if self._kind == "hnsw":
            settings = faiss.SearchParametersHNSW(efSearch=max(self._parameters["search_width"], pool))
        else:
            settings = faiss.SearchParametersIVF(nprobe=self._parameters["probes"])
        scores = np.full((len(queries), pool), -np.inf, dtype=np.float32)
        rows: Rows = np.full((len(queries), pool), -1, dtype=np.int64)
        for start, index in zip(self._bounds, self._segments(), strict=False):
            segment_scores, places = index.search(queries, min(pool, index.ntotal), params=settings)
            segment_scores[places < 0] = -np.inf
            all_scores = np.concatenate([scores, segment_scores], axis=1)
            all_rows = np.concatenate([rows, np.where(places < 0, -1, places + start)], axis=1)
            best = np.argsort(-all_scores, axis=1, kind="stable")[:, :pool]
            scores, rows = np.take_along_axis(all_scores, best, axis=1), np.take_along_axis(all_rows, best, axis=1)
        return rows

    def _segments(self) -> Iterator[Any]:
        yield from self._indexes or (self._open(place) for place in range(len(self._paths)))

    def _open(self, place: int) -> Any:
        faiss = load_faiss()
        # A single graph is read into memory, where it is fastest; of several, each page when it is needed.
        io_flag = faiss.IO_FLAG_MMAP_IFC if len(self._paths) > 1 else 0
        path = self._paths[place]
        try:
            index: Any = faiss.read_index(str(path), io_flag if self._kind == "hnsw" else faiss.IO_FLAG_MMAP)
        except RuntimeError as error:
            raise IndexStaleError(f"{path} cannot be read; build the index again") from error
        if index.ntotal != self._bounds[place + 1] - self._bounds[place] or index.d != self._vectors.shape[1]:
            raise IndexStaleError(f"{path} is not of these vectors; build the index again")
        return index


def share_found(rows: Rows, exact: Rows) -> float:
    """Return the mean share of each query's `exact` rows `[n, k]` that `rows` `[n, k]` holds, in any order."""
    return sum(
        len(set(query_rows) & set(exact_rows)) / len(exact_rows)
        for query_rows, exact_rows in zip(rows, exact, strict=True)
    ) / len(rows)
