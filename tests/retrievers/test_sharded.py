"""Shards of an index: hits and scores of the flat one, built one by one, refused when one is not right."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from medexam.errors import IndexBuildError, IndexStaleError
from medexam.retrievers import (
    BLOCK,
    build_corpus,
    build_shard,
    join_shards,
    open_index,
    prepare_shards,
)
from retrievers.random_vectors import CORPUS, COUNT, QUERIES, HashEncoder


@pytest.mark.parametrize("k", [1, 41, COUNT])
def test_hits_and_scores_are_those_of_the_flat_index(built: Path, sharded: Path, k: int) -> None:
    flat, parts = (open_index(folder, CORPUS.fingerprint, HashEncoder()) for folder in (built, sharded))
    assert parts.search(QUERIES, k) == flat.search(QUERIES, k)
    assert (parts.digest, len(parts)) == (flat.digest, COUNT)
    rows = np.array([0, BLOCK - 1, BLOCK, 2 * BLOCK + 5, COUNT - 1, 3])
    np.testing.assert_array_equal(parts.vectors_of(rows), flat.vectors_of(rows))


def test_equal_scores_stand_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    same = [replace(passage, title="", content="the same") for passage in CORPUS.passages]
    corpus = build_corpus("same", same, source="tests")
    for shard in prepare_shards(corpus, HashEncoder(), tmp_path, 4):
        build_shard(tmp_path, shard, HashEncoder())
    join_shards(HashEncoder(), tmp_path)
    (found,) = open_index(tmp_path, encoder=HashEncoder()).search(["x"], COUNT)
    assert [hit.passage.id for hit in found] == [passage.id for passage in corpus.passages]


def test_building_goes_on_shard_by_shard(tmp_path: Path, built: Path) -> None:
    encoder = HashEncoder()
    shards = prepare_shards(CORPUS, encoder, tmp_path, 3)
    build_shard(tmp_path, shards[1], encoder)
    with pytest.raises(IndexStaleError, match=f"unfinished, {shards[1].count:,} of {COUNT:,} passages"):
        open_index(tmp_path)
    with pytest.raises(IndexStaleError, match="unfinished"):
        join_shards(encoder, tmp_path)
    again = HashEncoder()
    assert prepare_shards(CORPUS, again, tmp_path, 7) == shards
    for shard in shards:
        build_shard(tmp_path, shard, again)
    assert again.encoded == COUNT - shards[1].count
    assert join_shards(again, tmp_path).digest == open_index(built).digest


def test_another_corpus_or_encoder_and_a_damaged_shard_are_refused(sharded: Path, built: Path, tmp_path: Path) -> None:
    with pytest.raises(IndexBuildError, match="begun with another encoder"):
        prepare_shards(CORPUS, HashEncoder(revision="2"), sharded, 3)
    with pytest.raises(IndexBuildError, match="was begun for corpus"):
        prepare_shards(build_corpus("x", CORPUS.passages[:9], source="x"), HashEncoder(), sharded, 3)
    assert len(prepare_shards(CORPUS, HashEncoder(), built, 3)) == 1, "an index that is whole is kept"
    changed = Path(shutil.copytree(sharded, tmp_path / "changed"))
    vectors = next(changed.glob("data-*"))
    data = bytearray(vectors.read_bytes())
    data[-1] ^= 1
    vectors.write_bytes(data)
    with pytest.raises(IndexStaleError, match=r"data-.*arrow was changed"):
        open_index(changed)
