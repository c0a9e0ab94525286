"""Projections by the real UMAP, of vectors that lie in three heaps."""

import numpy as np
import pytest

from medexam_companions.papers import fit_projection, measure_trust

pytestmark = pytest.mark.nightly
HEAPS = 3
EACH = 30


def _heaps(each: int, seed: int) -> np.ndarray:
    """`each` vectors around each of three directions, of very different lengths, heap after heap."""
    rng = np.random.default_rng(seed)
    directions = np.repeat(np.eye(HEAPS, 16), each, axis=0) + 0.1 * rng.standard_normal((HEAPS * each, 16))
    return (directions * rng.uniform(0.1, 10, (HEAPS * each, 1))).astype(np.float32)


@pytest.fixture(scope="module")
def projection():
    return fit_projection(_heaps(EACH, 0), seed=1)


def test_neighbours_on_the_plane_are_neighbours(projection) -> None:
    assert 0.85 < measure_trust(_heaps(EACH, 0), projection.embedding_, seed=1) <= 1
    strangers = np.random.default_rng(0).standard_normal((HEAPS * EACH, 16)).astype(np.float32)
    assert measure_trust(strangers, projection.embedding_, seed=1) < 0.7
