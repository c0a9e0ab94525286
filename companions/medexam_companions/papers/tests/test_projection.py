"""Projections by the real UMAP, of vectors that lie in three heaps."""

import numpy as np
import pytest

from medexam_companions.papers import LEAST, fit_projection, measure_trust

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


def test_other_vectors_fall_on_the_heap_of_their_direction(projection) -> None:
    centres = projection.embedding_.reshape(HEAPS, EACH, 2).mean(axis=1)
    places = projection.transform(_heaps(5, seed=2))
    distances = np.linalg.norm(places[:, None, :] - centres, axis=-1)
    assert places.shape == (HEAPS * 5, 2)
    assert distances.argmin(axis=1).tolist() == np.repeat(range(HEAPS), 5).tolist()


def test_the_same_seed_gives_the_same_places(projection) -> None:
    again = fit_projection(_heaps(EACH, 0), seed=1)
    np.testing.assert_array_equal(again.embedding_, projection.embedding_)
    np.testing.assert_array_equal(again.transform(_heaps(5, 2)), projection.transform(_heaps(5, 2)))
    assert not np.array_equal(fit_projection(_heaps(EACH, 0), seed=2).embedding_, projection.embedding_)


def test_neighbours_on_the_plane_are_neighbours(projection) -> None:
    assert 0.85 < measure_trust(_heaps(EACH, 0), projection.embedding_, seed=1) <= 1
    strangers = np.random.default_rng(0).standard_normal((HEAPS * EACH, 16)).astype(np.float32)
    assert measure_trust(strangers, projection.embedding_, seed=1) < 0.7


def test_the_fewest_vectors() -> None:
    vectors = np.random.default_rng(0).standard_normal((LEAST, 8)).astype(np.float32)
    assert np.isfinite(fit_projection(vectors, seed=0).embedding_).all()
