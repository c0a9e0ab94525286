"""An index that Ray Data encodes in shards, beside the flat one of this process."""

from dataclasses import replace
from pathlib import Path

import pytest

from medexam.experiments.run.ray.indexing import ShardBuilder, build_index_on_ray
from medexam.retrievers import (
    BLOCK,
    build_corpus,
    build_encoder,
    build_index,
    build_shard,
    load_corpus,
    open_index,
    prepare_shards,
)
from retrievers.tiny_models import save_medcpt

SAMPLE = load_corpus(Path(__file__).parents[1] / "retrievers" / "corpus_sample")
# Ray Data warns of what its own settings hold by default.
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")]


def short_passages(count):
    """Real text in pieces of a few words, which are encoded fast."""
    pieces = [
        replace(one, id=f"{one.id}#{at}", content=" ".join(one.content.split()[at : at + 12]))
        for one in SAMPLE.passages
        for at in (0, 12, 24)
    ]
    assert len(pieces) >= count
    return pieces[:count]


def test_workers_build_what_one_process_builds(cluster, tmp_path) -> None:
    cut = short_passages(2 * BLOCK + 60)
    corpus = build_corpus("sample", cut, source="tests")
    encoder = build_encoder(save_medcpt(tmp_path / "medcpt"))
    build_index(corpus, encoder, tmp_path / "flat")
    # One shard is there before, as after an interruption.
    first, *_ = prepare_shards(corpus, encoder, tmp_path / "sharded", 3)
    build_shard(tmp_path / "sharded", first, encoder)
    seen: list[int] = []
    manifest = build_index_on_ray(cluster, corpus, encoder, tmp_path / "sharded", progress=seen.append)
    assert (seen[0], seen[-1]) == (BLOCK, len(cut))
    titles = [passage.title for passage in corpus.passages[::7]]
    flat, parts = (open_index(tmp_path / kind, corpus.fingerprint, encoder) for kind in ("flat", "sharded"))
    hits, others = flat.search(titles, 10), parts.search(titles, 10)
    assert [[hit.passage.id for hit in found] for found in others] == [[hit.passage.id for hit in f] for f in hits]
    scores, theirs = ([hit.score for found in each for hit in found] for each in (hits, others))
    assert theirs == pytest.approx(scores, rel=1e-6)
    assert manifest.digest == flat.digest


def test_what_prevents_a_shard_is_told_as_data(tmp_path) -> None:
    corpus = build_corpus("one", SAMPLE.passages[:9], source="tests")
    encoder = build_encoder(save_medcpt(tmp_path / "medcpt"))
    (shard,) = prepare_shards(corpus, encoder, tmp_path / "index", 4)
    other = save_medcpt(tmp_path / "other")
    (other / "article-encoder" / "vocab.txt").write_text("another worker has another file")
    faults = {other: "other: it holds revision sha256:", tmp_path / "none": "none: no such model folder"}
    for folder, fault in faults.items():
        builder = ShardBuilder(str(tmp_path / "index"), str(folder), encoder.revision, "cpu", "float32")
        assert fault in builder(shard.model_dump())["fault"]
    moved = save_medcpt(tmp_path / "elsewhere")
    builder = ShardBuilder(str(tmp_path / "index"), str(moved), encoder.revision, "cpu", "float32")
    assert builder(shard.model_dump())["fault"] == ""
