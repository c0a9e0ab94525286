"""Corpora and structures of any size: what is read and built in blocks is what is built from all at once."""

import json
from pathlib import Path

import numpy as np
import pytest

from medexam.errors import DatasetError
from medexam.retrievers import (
    SEGMENTS,
    build_index,
    build_shard,
    chunk_corpus,
    join_shards,
    load_corpus,
    open_index,
    prepare_shards,
    read_manifest,
    stream_corpus,
)
from retrievers.random_vectors import CORPUS, COUNT, QUERIES, HashEncoder

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
    assert (streamed.fingerprint, streamed.count, streamed.skipped) == (loaded.fingerprint, loaded.count, 0)
    assert (streamed.name, streamed.licence) == (loaded.name, loaded.licence)


def test_a_corpus_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", [{"id": "1", "content": "one"}])
    corpus = stream_corpus(path)
    write_rows(path, [{"id": "1", "content": "another"}])
    with pytest.raises(DatasetError, match="was changed while it was read"):
        build_index(corpus, HashEncoder(), tmp_path / "index")


def test_an_index_of_a_stream_is_that_of_memory(tmp_path: Path) -> None:
    encoder = HashEncoder()
    build_index(load_corpus(SAMPLE), encoder, tmp_path / "memory")
    build_index(stream_corpus(SAMPLE), encoder, tmp_path / "stream")
    assert read_manifest(tmp_path / "memory").sha256 == read_manifest(tmp_path / "stream").sha256
    # A finished index is of the same corpus for both.
    build_index(stream_corpus(SAMPLE), encoder, tmp_path / "memory")
    assert encoder.encoded == 400


@pytest.mark.parametrize("shards", [1, 3])
def test_a_graph_in_segments_finds_nearly_all(
    built: Path, tmp_path: Path, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SEGMENTS, "bytes", 100_000)
    encoder = HashEncoder()
    for shard in prepare_shards(CORPUS, encoder, tmp_path, shards):
        build_shard(tmp_path, shard, encoder)
    manifest = join_shards(encoder, tmp_path, "hnsw")
    assert len(list(tmp_path.glob("structure*"))) == 3
    assert manifest.recall is not None
    assert manifest.recall.value > 0.95
    flat, found = (open_index(folder, CORPUS.fingerprint, encoder) for folder in (built, tmp_path))
    assert flat.digest != found.digest
    pairs = zip(flat.search(QUERIES, 10), found.search(QUERIES, 10), strict=True)
    assert np.mean([a == b for mine, its in pairs for a, b in zip(mine, its, strict=True)]) > 0.9
    assert len(found.search(["x"], COUNT)[0]) == COUNT
    build_index(CORPUS, encoder, tmp_path, "flat")
    assert encoder.encoded == COUNT, "another kind encodes nothing again"
    assert not list(tmp_path.glob("structure*"))
    assert open_index(tmp_path).digest == flat.digest
