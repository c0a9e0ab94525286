"""Corpora and structures of any size: what is read and built in blocks is what is built from all at once."""

import json
import tracemalloc
from pathlib import Path

import faiss
import numpy as np
import pytest

from datasets import load_from_disk
from medexam.errors import DatasetError
from medexam.retrievers import (
    StoredVectors,
    approximate,
    build_corpus,
    build_index,
    build_shard,
    chunk_corpus,
    join_shards,
    load_corpus,
    open_index,
    prepare_shards,
    read_manifest,
    search_exhaustively,
    stream_corpus,
)
from medexam.retrievers.passage_rows import read_vectors
from retrievers.random_vectors import CORPUS, COUNT, QUERIES, HashEncoder, corpus_of

SAMPLE = Path(__file__).parent / "corpus_sample"


def write_rows(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("chunk", [None, (40, 10)])
def test_a_streamed_corpus_is_the_one_in_memory(chunk: tuple[int, int] | None) -> None:
    loaded = load_corpus(SAMPLE)
    if chunk:
        loaded = chunk_corpus(loaded, *chunk)
    size, overlap = chunk or (None, 0)
    streamed = stream_corpus(SAMPLE, chunk_tokens=size, chunk_overlap=overlap)
    assert tuple(streamed.read()) == tuple(loaded.read()) == tuple(streamed.read())
    for name in (
        "name", "count", "characters", "fingerprint", "source", "licence", "skipped", "chunk_tokens", "chunk_overlap"
    ):  # fmt: skip
        assert getattr(streamed, name) == getattr(loaded, name)


def test_bad_rows_are_counted_once_however_often_it_is_read(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", [{"id": "1", "content": "one"}, {"id": "2"}, {"id": "3", "content": "x"}])
    with pytest.raises(DatasetError, match=r"line 2: passage '2' has no text"):
        stream_corpus(path)
    corpus = stream_corpus(path, skip_bad=True)
    assert (corpus.skipped, [passage.id for passage in corpus.read()]) == (1, ["1", "3"])
    assert (corpus.skipped, len(list(corpus.read()))) == (1, 2)


def test_an_id_that_stands_twice_is_found_without_keeping_ids(tmp_path: Path) -> None:
    rows = [{"id": f"{n}", "content": "a b c d"} for n in range(300)]
    path = write_rows(tmp_path / "a.jsonl", [*rows, {"id": "7", "content": "again"}])
    with pytest.raises(DatasetError, match=r"line 301: id '7' is already in .*line 8"):
        stream_corpus(path)
    path = write_rows(tmp_path / "b.jsonl", [*rows, {"id": "7#0", "content": "one"}])
    with pytest.raises(DatasetError, match="id '7#0' occurs twice"):
        stream_corpus(path, chunk_tokens=2)


def test_a_corpus_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", [{"id": "1", "content": "one"}])
    corpus = stream_corpus(path)
    write_rows(path, [{"id": "1", "content": "another"}])
    with pytest.raises(DatasetError, match="was changed while it was read"):
        build_index(corpus, HashEncoder(), tmp_path / "index")
    assert not (tmp_path / "index" / "progress.json").exists()


def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    count, text = 4000, "x" * 5000
    path = write_rows(tmp_path / "a.jsonl", [{"id": f"{n}", "content": text} for n in range(count)])
    encoder = HashEncoder(4)
    stream_corpus(SAMPLE)
    tracemalloc.start()
    try:
        build_index(stream_corpus(path), encoder, tmp_path / "index")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert encoder.encoded == count
    assert peak < count * len(text) / 4


def test_an_index_of_a_stream_is_that_of_memory(tmp_path: Path) -> None:
    encoder = HashEncoder()
    build_index(load_corpus(SAMPLE), encoder, tmp_path / "memory")
    build_index(stream_corpus(SAMPLE), encoder, tmp_path / "stream")
    files = read_manifest(tmp_path / "memory").sha256
    assert files == read_manifest(tmp_path / "stream").sha256
    # A finished index is of the same corpus for both.
    build_index(stream_corpus(SAMPLE), encoder, tmp_path / "memory")
    assert encoder.encoded == 400


def test_stored_vectors_are_numpys(sharded: Path) -> None:
    rows = load_from_disk(sharded)
    whole, stored = rows.with_format("numpy")[:]["vector"], StoredVectors(rows)
    assert (stored.shape, len(stored)) == (whole.shape, COUNT)
    places = np.array([[0, 6, 7], [COUNT - 2, -1, 7]])
    np.testing.assert_array_equal(stored[places], whole[places])
    paths = sorted(sharded.glob("data-*"))
    np.testing.assert_array_equal(np.concatenate(list(read_vectors(paths))), whole)


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate, "SEGMENT_BYTES", 100_000)


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("shards", [1, 3])
def test_graphs_of_segments(built: Path, tmp_path: Path, shards: int) -> None:
    encoder = HashEncoder()
    if shards == 1:
        manifest = build_index(CORPUS, encoder, tmp_path, "hnsw")
    else:
        for shard in prepare_shards(CORPUS, encoder, tmp_path, shards):
            build_shard(tmp_path, shard, encoder)
        manifest = join_shards(encoder, tmp_path, "hnsw")
    graphs = sorted(path.name for path in tmp_path.glob("structure*"))
    assert graphs == [f"structure-{place:05d}.faiss" for place in range(3)]
    assert set(graphs) < set(manifest.bytes)
    assert manifest.parameters["segment"] == 100_000 // (16 * 4 + 32 * 8 + 24)
    assert manifest.recall is not None
    assert manifest.recall.value > 0.95
    flat, found = (open_index(folder, CORPUS.fingerprint, encoder) for folder in (built, tmp_path))
    assert flat.digest != found.digest
    pairs = zip(flat.search(QUERIES, 10), found.search(QUERIES, 10), strict=True)
    assert np.mean([a == b for mine, its in pairs for a, b in zip(mine, its, strict=True)]) > 0.9
    assert len(found.search(["x"], COUNT)[0]) == COUNT
    # Another kind leaves none of its files behind.
    done: list[int] = []
    build_index(CORPUS, encoder, tmp_path, "flat", done.append)
    assert (encoder.encoded, done[-1]) == (COUNT, COUNT), "another kind encodes nothing again"
    assert not list(tmp_path.glob("structure*"))
    assert open_index(tmp_path).digest == flat.digest


def test_cells_of_segments_are_those_of_one_faiss_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAISS alone, on the same rows and in one index, proposes the same candidates."""
    count, dimension = 10_000, 4
    vectors = np.random.default_rng(2).standard_normal((count, dimension)).astype(np.float32)
    corpus = corpus_of(count)

    class Drawn(HashEncoder):
        def encode_passages(self, passages, progress=None):  # type: ignore[no-untyped-def]
            return vectors[[int(passage.id.split("-")[1]) for passage in passages]]

        def encode_queries(self, texts, progress=None):  # type: ignore[no-untyped-def]
            return vectors[:: count // len(texts)][: len(texts)] + np.float32(0.1)

    monkeypatch.setattr(approximate, "SEGMENT_BYTES", 3_000 * 9)
    manifest = build_index(corpus, Drawn(dimension), tmp_path, "ivfpq")
    parameters = manifest.parameters
    assert parameters["segment"] == 3_000
    queries = vectors[::500] + np.float32(0.1)
    opened = open_index(tmp_path)
    search = opened._structure
    assert search is not None
    ours = approximate._find("ivfpq", parameters, count, search._searches, queries, 100)
    alone = faiss.index_factory(dimension, f"IVF{parameters['cells']},PQ1x8", faiss.METRIC_INNER_PRODUCT)
    alone.train(vectors[np.linspace(0, count - 1, count).astype(np.int64)])
    alone.add(vectors)
    alone.nprobe = parameters["probes"]
    scores, theirs = alone.search(queries, 100)
    for mine, its, scored in zip(ours, theirs, scores, strict=True):
        # The last score may be that of more rows than fit.
        sure = its[scored > scored[-1] + 1e-5]
        assert set(sure) <= set(mine)
    exact = (queries.astype(np.float64) @ vectors.T.astype(np.float64)).argsort(axis=1)[:, ::-1][:, :5]
    np.testing.assert_array_equal(search_exhaustively(opened._vectors, queries, 5)[1], exact)


def test_training_fits_into_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    pubmed = approximate.choose_parameters("ivfpq", 36_000_000, 768)
    points = approximate.TRAINING_BYTES // (768 * 4)
    assert points // pubmed["cells"] >= approximate.POINTS_PER_CENTROID
    # A corpus whose training always fitted keeps its settings.
    assert approximate.choose_parameters("ivfpq", 1_000_000, 768)["cells"] == 4_000
    assert approximate.choose_parameters("hnsw", 126_000, 384) == {
        "links": 32, "build_width": 200, "search_width": 128
    }  # fmt: skip


def test_an_empty_stream(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", [{"id": "1"}])
    with pytest.raises(DatasetError, match=r"holds no passages \(1 rows"):
        stream_corpus(path, skip_bad=True)
    assert build_corpus("one", corpus_of(1).passages, source="x").characters == len(corpus_of(1).passages[0].text)
