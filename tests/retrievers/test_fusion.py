"""Reciprocal rank fusion beside ranx's, and beside a computation by hand on real rankings."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from medexam.datasets import load_exam_set
from medexam.retrievers import (
    BM25Retriever,
    FusionRetriever,
    Hit,
    Passage,
    build_corpus,
    load_corpus,
)
from medexam.specs import DatasetSpec

SAMPLE = Path(__file__).parent / "corpus_sample"


class FixedRetriever:
    """Finds the same passages for every query."""

    def __init__(self, corpus, ranking: str) -> None:
        self._ranking = [next(p for p in corpus.passages if p.id == key) for key in ranking]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        hits = [Hit(passage, 1.0, rank) for rank, passage in enumerate(self._ranking[:k], start=1)]
        return [hits for _ in queries]


@pytest.fixture
def letters():
    return build_corpus("letters", [Passage(key, "", key, "s") for key in "dcbaxyz"], source="here")


def _fuse(corpus, *rankings: str, k: int = 4, **settings) -> list[tuple[str, float]]:
    members = [FixedRetriever(corpus, ranking) for ranking in rankings]
    (hits,) = FusionRetriever(members, corpus, **settings).search(["q"], k)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [(hit.passage.id, hit.score) for hit in hits]


def test_scores_are_those_of_ranx(letters) -> None:
    # ranx 0.3.21: fuse([Run({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}), Run({"q": {"c": 9.0, "d": 2.0, "b": 1.0}})],
    # method="rrf", norm=None, params={"k": 100})
    assert _fuse(letters, "abc", "cdb") == [
        ("c", pytest.approx(0.01960972796308757, rel=1e-15)),
        ("b", pytest.approx(0.01951265943270512, rel=1e-15)),
        ("a", pytest.approx(0.009900990099009901, rel=1e-15)),
        ("d", pytest.approx(0.00980392156862745, rel=1e-15)),
    ]


def test_equal_scores_stand_in_the_order_of_the_corpus(letters) -> None:
    assert [key for key, _ in _fuse(letters, "ab", "cd", k=4)] == list("cadb")
    scores = dict(_fuse(letters, "abcxyz", "xcaybz", "cyzbxa", "ybxazc", k=7))
    three = dict(_fuse(letters, "abc", "bca", "cab", k=3))
    assert len(set(three.values())) == 1
    assert list(three) == list("cba")
    assert len(scores) == 6


def test_constant(letters) -> None:
    assert _fuse(letters, "a", constant=60) == [("a", 1 / 61)]
    assert _fuse(letters, "a", constant=0) == [("a", 1.0)]


def test_real_rankings_are_fused_as_by_hand() -> None:
    corpus = load_corpus(SAMPLE)
    queries = [q.stem for q in load_exam_set(DatasetSpec(name="headqa_sample", language="en")).questions] + ["qwxyz"]
    members = [BM25Retriever(corpus, language) for language in ("en", "es")]
    fused = FusionRetriever(members, corpus).search(queries, 20)
    position = {passage.id: number for number, passage in enumerate(corpus.passages)}
    found = [member.search(queries, 100) for member in members]
    for query, hits in enumerate(fused):
        ranks = np.full((2, len(corpus.passages)), np.inf)
        for row, rankings in zip(ranks, found, strict=True):
            for hit in rankings[query]:
                row[position[hit.passage.id]] = hit.rank
        scores = (1 / (100 + ranks)).sum(axis=0)
        best = np.argsort(-scores, kind="stable")[: min(20, np.count_nonzero(scores))]
        assert [position[hit.passage.id] for hit in hits] == best.tolist()
        assert [hit.score for hit in hits] == pytest.approx(scores[best].tolist(), rel=1e-15)
    assert fused[-1] == []


def test_more_passages_than_a_member_is_usually_asked_for() -> None:
    keys = "".join(map(chr, range(256, 357)))
    corpus = build_corpus("many", [Passage(key, "", key, "s") for key in keys], source="here")
    assert len(_fuse(corpus, keys, k=101)) == 101
