"""Shards of an index: hits and scores of the flat one, built one by one, refused when one is not right."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datasets import load_from_disk
from medexam.errors import IndexBuildError, IndexStaleError
from medexam.retrievers import (
    BLOCK,
    build_corpus,
    build_encoder,
    build_index,
    build_shard,
    join_shards,
    load_corpus,
    open_index,
    prepare_shards,
    read_manifest,
)
from medexam.retrievers.index_manifest import count_encoded
from retrievers.random_vectors import CORPUS, COUNT, QUERIES, HashEncoder
from retrievers.tiny_models import save_medcpt


def build_sharded(corpus, encoder, folder, number):
    for shard in prepare_shards(corpus, encoder, folder, number):
        build_shard(folder, shard, encoder)
    return join_shards(encoder, folder)


@pytest.mark.parametrize("k", [1, 7, 41, COUNT])
def test_hits_and_scores_are_those_of_the_flat_index(built: Path, sharded: Path, k: int) -> None:
    flat, parts = (open_index(folder, CORPUS.fingerprint, HashEncoder()) for folder in (built, sharded))
    assert parts.search(QUERIES, k) == flat.search(QUERIES, k)
    assert (parts.digest, len(parts)) == (flat.digest, COUNT)


def test_shards_hold_whole_blocks_in_the_order_of_the_corpus(sharded: Path) -> None:
    shards = read_manifest(sharded).shards
    assert len(shards) == 3
    assert [shard.count % BLOCK for shard in shards] == [0, 0, COUNT % BLOCK]
    assert sum(shard.count for shard in shards) == COUNT
    assert load_from_disk(sharded)["id"] == [passage.id for passage in CORPUS.passages]


def test_equal_scores_stand_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    same = [replace(passage, title="", content="the same") for passage in CORPUS.passages]
    corpus = build_corpus("same", same, source="tests")
    build_sharded(corpus, HashEncoder(), tmp_path, 4)
    (found,) = open_index(tmp_path, encoder=HashEncoder()).search(["x"], COUNT)
    assert [hit.passage.id for hit in found] == [passage.id for passage in corpus.passages]


def test_vectors_of_rows_come_from_their_shards(built: Path, sharded: Path) -> None:
    rows = np.array([0, BLOCK - 1, BLOCK, 2 * BLOCK + 5, COUNT - 1, 3])
    flat, parts = (open_index(folder).vectors_of(rows) for folder in (built, sharded))
    np.testing.assert_array_equal(parts, flat)


def test_building_goes_on_shard_by_shard(tmp_path: Path) -> None:
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
    assert count_encoded(tmp_path, shards) == COUNT
    assert join_shards(again, tmp_path).digest == open_index(tmp_path).digest


def test_another_corpus_or_encoder_is_refused(sharded: Path, built: Path) -> None:
    with pytest.raises(IndexBuildError, match="begun with another encoder: revision 1, not 2"):
        prepare_shards(CORPUS, HashEncoder(revision="2"), sharded, 3)
    with pytest.raises(IndexBuildError, match="was begun for corpus"):
        prepare_shards(build_corpus("x", CORPUS.passages[:9], source="x"), HashEncoder(), sharded, 3)
    assert len(prepare_shards(CORPUS, HashEncoder(), built, 3)) == 1, "an index that is whole is kept"


def test_a_shard_that_is_not_right_is_refused(sharded: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(sharded, cut)
    vectors = next(cut.glob("data-*"))
    vectors.write_bytes(vectors.read_bytes()[:-4])
    with pytest.raises(IndexStaleError, match=r"arrow has"):
        open_index(cut)
    changed = tmp_path / "changed"
    shutil.copytree(sharded, changed)
    vectors = next(changed.glob("data-*"))
    data = bytearray(vectors.read_bytes())
    data[-1] ^= 1
    vectors.write_bytes(data)
    with pytest.raises(IndexStaleError, match=r"data-.*arrow was changed"):
        open_index(changed)


@pytest.mark.parametrize("name", ["minilm", "medcpt"])
def test_real_encoders_over_three_hundred_passages(name: str, tmp_path: Path) -> None:
    """Real text in pieces of a few words, to be quick."""
    sample = load_corpus(Path(__file__).parent / "corpus_sample")
    pieces = [
        replace(passage, id=f"{passage.id}#{at}", content=" ".join(passage.content.split()[at : at + 8]))
        for passage in sample.passages[:150]
        for at in (0, 8)
    ]
    corpus = build_corpus("sample", pieces, source=sample.source)
    assert len(pieces) > BLOCK
    encoder = build_encoder(save_medcpt(tmp_path / "medcpt") if name == "medcpt" else name)
    build_index(corpus, encoder, tmp_path / "flat")
    build_sharded(corpus, encoder, tmp_path / "sharded", 2)
    titles = [passage.title for passage in corpus.passages[::7]]
    flat, parts = (open_index(tmp_path / kind, corpus.fingerprint, encoder) for kind in ("flat", "sharded"))
    assert parts.search(titles, 10) == flat.search(titles, 10)
    assert parts.digest == flat.digest
