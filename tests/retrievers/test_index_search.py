"""Rankings of an opened index: exact ones equal a brute force, approximate ones come close."""

import shutil
from dataclasses import replace
from pathlib import Path

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from datasets import Dataset, Features, List, Value, load_from_disk
from medexam.retrievers import (
    StoredVectors,
    build_corpus,
    build_encoder,
    build_index,
    load_corpus,
    open_index,
    search_exhaustively,
)
from retrievers.random_vectors import CORPUS, COUNT, QUERIES, HashEncoder, corpus_of


def _stored(vectors: NDArray[np.float32], part_bytes: int = 1 << 20) -> StoredVectors:
    features = Features({"vector": List(Value("float32"), length=vectors.shape[1])})
    return StoredVectors(Dataset.from_dict({"vector": vectors}, features), part_bytes)


def _brute_force(
    vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Every score in float64, and a stable sort: equal scores stay in the order of rows."""
    scores = queries.astype(np.float64) @ vectors.astype(np.float64).T
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, rows, axis=1), rows


def test_hits_are_those_of_a_brute_force(built: Path) -> None:
    encoder = HashEncoder()
    hits = open_index(built, CORPUS.fingerprint, encoder).search(QUERIES, 7)
    scores, rows = _brute_force(encoder.encode_passages(CORPUS.passages), encoder.encode_queries(QUERIES), 7)
    for found, row, score in zip(hits, rows, scores, strict=True):
        assert [hit.passage for hit in found] == [CORPUS.passages[i] for i in row]
        assert [hit.rank for hit in found] == [1, 2, 3, 4, 5, 6, 7]
        np.testing.assert_allclose([hit.score for hit in found], score, rtol=1e-12)


@pytest.mark.parametrize("rows_in_a_block", [3, 100, 5000])
def test_blocks_do_not_change_a_ranking(rows_in_a_block: int) -> None:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((500, 24), dtype=np.float32) * 8
    queries = random.standard_normal((25, 24), dtype=np.float32) * 8
    scores, rows = search_exhaustively(_stored(vectors, rows_in_a_block * 24 * 4), queries, 9)
    expected_scores, expected_rows = _brute_force(vectors, queries, 9)
    assert (rows == expected_rows).all()
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-12)
    stored = _stored(vectors)
    alone = [search_exhaustively(stored, queries[n : n + 1], 9) for n in range(25)]
    assert (np.concatenate([found[0] for found in alone]) == scores).all(), "other queries change no digit"


@pytest.mark.parametrize("number", [1, 2500])
@pytest.mark.parametrize("copies", [3, 300])
def test_ties_are_in_the_order_of_the_corpus(copies: int, number: int) -> None:
    """Equal vectors scattered over all blocks, more of them than candidates are fetched at first."""
    random = np.random.default_rng(1)
    vectors = random.standard_normal((400, 12), dtype=np.float32)
    places = np.sort(random.choice(400, copies, replace=False))
    vectors[places] = 5 * np.ones(12, dtype=np.float32)
    queries = np.abs(random.standard_normal((number, 12), dtype=np.float32)) + 1
    scores, rows = search_exhaustively(_stored(vectors, 50 * 12 * 4), queries, 5)
    expected = places[:5] if copies >= 5 else places[:3]
    assert (rows[:, : len(expected)] == expected).all()
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("number", [1, 30])
def test_long_vectors_do_not_hide_short_ones(number: int) -> None:
    """Scores that are equal in float32, far from 0, and differ in float64."""
    base = np.full(8, 1000, dtype=np.float32)
    vectors = np.tile(base, (200, 1))
    vectors[137, 0] = np.nextafter(np.float32(1000), np.float32(2000))
    queries = np.tile(base, (number, 1))
    assert search_exhaustively(_stored(vectors), queries, 2)[1].tolist() == [[137, 0]] * number


def test_all_of_the_corpus_and_no_more(built: Path) -> None:
    retriever = open_index(built, encoder=HashEncoder())
    assert len(retriever) == COUNT
    assert len({hit.passage.id for hit in retriever.search(["x"], COUNT)[0]}) == COUNT
    assert retriever.search([], 3) == []
    for k in (0, COUNT + 1):
        with pytest.raises(ValueError, match=f"k is {k}"):
            retriever.search(["x"], k)


def _share(folder: Path, exact: Path, encoder: HashEncoder) -> float:
    """How many of the ten best passages of exact search an index finds."""
    hits = [open_index(place, encoder=encoder).search(QUERIES, 10) for place in (folder, exact)]
    ids = [[{hit.passage.id for hit in query} for query in queries] for queries in hits]
    return float(np.mean([len(ours & best) / 10 for ours, best in zip(*ids, strict=True)]))


def test_a_graph_is_made_for_the_inner_product(tmp_path: Path) -> None:
    """Long vectors win by the inner product and lose by the distance."""

    class Scaled(HashEncoder):
        def encode_passages(self, passages):  # type: ignore[no-untyped-def]
            vectors = super().encode_passages(passages)
            return vectors * np.linspace(1, 60, len(vectors), dtype=np.float32)[:, None]

    exact, graph = tmp_path / "exact", tmp_path / "graph"
    build_index(corpus_of(300), Scaled(), exact)
    build_index(corpus_of(300), Scaled(), graph, "HNSW32", "efSearch=128")
    assert _share(graph, exact, Scaled()) > 0.95


@pytest.mark.nightly
def test_quantised_cells(tmp_path: Path) -> None:
    """Passages in three hundred groups; few dimensions, for the training takes seconds for every four of them."""
    count = 10_000
    random = np.random.default_rng(2)
    centres = random.standard_normal((300, 4), dtype=np.float32)
    vectors = centres[random.integers(300, size=count)] + 0.2 * random.standard_normal((count, 4), dtype=np.float32)

    class Grouped(HashEncoder):
        def encode_passages(self, passages):  # type: ignore[no-untyped-def]
            return vectors[[int(passage.id.split("-")[1]) for passage in passages]]

        def encode_queries(self, texts):  # type: ignore[no-untyped-def]
            return vectors[np.linspace(0, count - 1, len(texts)).astype(int)]

    manifest = build_index(corpus_of(count), Grouped(4), tmp_path / "cells", "IVF256,PQ1", "nprobe=32")
    build_index(corpus_of(count), Grouped(4), tmp_path / "exact")
    assert _share(tmp_path / "cells", tmp_path / "exact", Grouped(4)) > 0.8
    assert (manifest.factory, manifest.parameters) == ("IVF256,PQ1", "nprobe=32")
    hits = open_index(tmp_path / "cells", encoder=Grouped(4)).search(["a", "b"], 5)
    best = [_brute_force(vectors, vectors[[0, count - 1]], 1)[0][row, 0] for row in (0, 1)]
    np.testing.assert_allclose([found[0].score for found in hits], best, rtol=1e-12)


@pytest.mark.parametrize("factory", [None, "HNSW32"])
def test_datasets_and_faiss_alone_open_the_folder_and_find_the_same(
    tmp_path: Path, built: Path, factory: str | None
) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    encoder = HashEncoder()
    build_index(CORPUS, encoder, folder, factory)
    assert encoder.encoded == 0, "another kind takes the vectors that are there"
    rows = load_from_disk(folder)
    if factory is None:
        rows.add_faiss_index("vector", metric_type=faiss.METRIC_INNER_PRODUCT)
    else:
        rows.load_faiss_index("vector", folder / "structure.faiss")
    _, found = rows.get_nearest_examples_batch("vector", encoder.encode_queries(QUERIES), k=3)
    hits = open_index(folder, encoder=encoder).search(QUERIES, 3)
    same = [columns["id"] == [hit.passage.id for hit in query] for columns, query in zip(found, hits, strict=True)]
    assert np.mean(same) > (0.9 if factory else 0.99)


def test_rankings_of_real_passages_with_ties_are_those_of_torch(tmp_path: Path) -> None:
    """Vectors of real passages by MiniLM, each of which stands twice, far apart; a title's own passage comes first."""
    import torch

    sample = load_corpus(Path(__file__).parent / "corpus_sample").passages[:30]
    texts = [replace(passage, content=" ".join(passage.content.split()[:12])) for passage in sample]
    twice = [replace(passage, id=f"{passage.id}#{part}") for part in (0, 1) for passage in texts]
    encoder = build_encoder("minilm")
    corpus = build_corpus("twice", twice, source="tests")
    build_index(corpus, encoder, tmp_path)
    titles = [passage.title for passage in texts]
    queries = encoder.encode_queries([*titles, *(passage.content for passage in texts)])
    rows = open_index(tmp_path, encoder=encoder).search_vectors(queries, 9)[1]
    vectors = torch.from_numpy(load_from_disk(tmp_path).with_format("numpy")[:]["vector"].astype(np.float64))
    scores = torch.from_numpy(queries.astype(np.float64)) @ vectors.T
    theirs = torch.sort(scores.round(decimals=12), dim=1, descending=True, stable=True).indices[:, :9]
    assert (rows == theirs.numpy()).all()
    # Without an encoder the index loads the one that its manifest names.
    hits = open_index(tmp_path, corpus.fingerprint).search(titles, 5)
    assert [[hit.passage for hit in found] for found in hits] == [
        [corpus.passages[row] for row in found[:5]] for found in rows[:30]
    ]
    assert (
        np.mean([title in {hit.passage.title for hit in found} for title, found in zip(titles, hits, strict=True)])
        > 0.9
    )
