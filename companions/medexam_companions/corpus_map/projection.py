"""Vectors in, places on a plane out: UMAP, fitted to some vectors and applied to others of the same space.

It sees arrays alone and knows nothing of passages, questions or pictures. Needs umap-learn, which comes with the extra
`maps`.
"""

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam import MedExamError
from medexam.files import cache_dir

Vectors = NDArray[np.float32]
Places = NDArray[np.float32]

NEIGHBOURS = 15
"""How many neighbours of each vector the projection tries to keep together; UMAP's own default."""
MIN_DIST = 0.1
"""How close two places may come, in the plane's unit; UMAP's own default."""
METRIC = "cosine"
LEAST = NEIGHBOURS + 1
"""The fewest vectors that can be fitted."""
_JUDGED = 2_000
"""Rows among which the trustworthiness is measured; its memory grows with their square."""


class Projection:
    """A fitted UMAP in two dimensions; `fit_projection` makes it."""

    def __init__(self, umap: Any, seed: int) -> None:
        self._umap = umap
        self._seed = seed

    @property
    def places(self) -> Places:
        """Where the fitted vectors lie, `[n, 2]`: row i is vector i."""
        places: Places = self._umap.embedding_
        return places

    def project(self, vectors: Vectors) -> Places:
        """Return where other vectors `[n, dimension]` lie among the fitted ones, `[n, 2]`: row i is vector i.

        Repeatable for the same vectors together: each row's place depends a little on the other rows.
        """
        if not len(vectors):
            return np.empty((0, 2), dtype=np.float32)
        places: Places = self._umap.transform(np.ascontiguousarray(vectors, dtype=np.float32))
        return places

    def trustworthiness(self, vectors: Vectors) -> float:
        """Measure how far neighbours on the plane are neighbours among the fitted `vectors` too: from 0 to 1, which is
        best.

        Measured by scikit-learn among at most 2,000 rows, drawn by the projection's seed.
        """
        manifold = importlib.import_module("sklearn.manifold")
        rows = draw_rows(len(vectors), _JUDGED, self._seed)
        near = min(NEIGHBOURS, (len(rows) - 1) // 2)
        score = manifold.trustworthiness(vectors[rows], self.places[rows], n_neighbors=near, metric=METRIC)
        return float(score)


def fit_projection(vectors: Vectors, seed: int) -> Projection:
    """Fit UMAP to vectors `[n, dimension]`, the same way every time for the same vectors and seed.

    Nearness is the cosine. For vectors of length 1 that is their inner product, which ranks passages. An inner product
    of vectors of other lengths (MedCPT's) is no distance: a vector need not be its own nearest, and the few longest
    would be everyone's neighbours, so the map shows their directions.

    The places begin at the two principal components, which keep the large distances and need no solver that may not
    converge. One thread is used, because threads would finish in any order. Raises `MedExamError` without umap-learn
    and `ValueError` for fewer than `LEAST` vectors.
    """
    if len(vectors) < LEAST:
        raise ValueError(f"{len(vectors)} vectors cannot be projected; at least {LEAST} can")
    umap = load_umap().UMAP(
        n_components=2,
        n_neighbors=NEIGHBOURS,
        min_dist=MIN_DIST,
        metric=METRIC,
        init="pca",
        random_state=seed,
        transform_seed=seed,
        n_jobs=1,
    )
    umap.fit(np.ascontiguousarray(vectors, dtype=np.float32))
    return Projection(umap, seed)


def draw_rows(count: int, most: int, seed: int) -> NDArray[np.int64]:
    """Draw at most `most` of the rows from 0 to `count - 1` by `seed`, ascending; all of them where they suffice."""
    if count <= most:
        return np.arange(count, dtype=np.int64)
    return np.sort(np.random.default_rng(seed).choice(count, most, replace=False)).astype(np.int64)


def load_umap() -> Any:
    """Import the UMAP module; its first import on a machine compiles for half a minute.

    What is compiled is kept beside the module, or in medexam's cache where that folder cannot be written. Raises
    `MedExamError` with the install line where umap-learn is missing.
    """
    spec = importlib.util.find_spec("umap")
    if spec is None or spec.origin is None:
        raise MedExamError("the corpus map needs umap-learn: pip install 'medexam[maps]'")
    if not os.access(Path(spec.origin).parent, os.W_OK):
        os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_dir() / "numba"))
    with warnings.catch_warnings():
        # It tells everyone that its neural variant, which is not used here, would need TensorFlow.
        warnings.simplefilter("ignore", ImportWarning)
        return importlib.import_module("umap")
