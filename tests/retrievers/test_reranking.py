"""Reranking against transformers called on each pair, over a base whose ranking is known."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from medexam.errors import EngineError
from medexam.retrievers import Hit, Passage, RerankingRetriever
from retrievers.tiny_models import save_bert

TEXTS = ["drug of fever", "bone", "heart and blood", "nerve cell " * 300, "kidney dose", "lung"]
PASSAGES = [Passage(str(n), "the heart" if n % 2 else "", text, "t") for n, text in enumerate(TEXTS)]


class InOrder:
    """Finds the first passages for every query."""

    def __init__(self, found: int = len(PASSAGES)) -> None:
        self.asked: list[int] = []
        self._found = found

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if k > len(PASSAGES):
            raise ValueError(k)
        self.asked.append(k)
        hits = [Hit(passage, -float(n), n) for n, passage in enumerate(PASSAGES[: min(k, self._found)], start=1)]
        return [hits for _ in queries]


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("models") / "cross", 3, labels=1)


def _logits(folder: Path, query: str, passages: Sequence[Passage]) -> list[float]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    pairs = [[query, passage.text] for passage in passages]
    encoded = AutoTokenizer.from_pretrained(folder)(
        pairs, truncation=True, padding=True, return_tensors="pt", max_length=512
    )
    with torch.no_grad():
        logits: list[float] = model(**encoded).logits.squeeze(1).tolist()
    return logits


def test_the_order_is_that_of_the_logits(cross: Path) -> None:
    base = InOrder()
    queries = ["what is the drug", "heart", "which bone"]
    hits = RerankingRetriever(base, cross, 5).search(queries, 3)
    assert base.asked == [5]
    for query, found in zip(queries, hits, strict=True):
        logits = _logits(cross, query, PASSAGES[:5])
        order = np.argsort([-logit for logit in logits], kind="stable")[:3]
        assert [hit.passage for hit in found] == [PASSAGES[place] for place in order]
        assert [hit.rank for hit in found] == [1, 2, 3]
        np.testing.assert_allclose([hit.score for hit in found], [logits[place] for place in order], atol=1e-4)


def test_depth_and_number(cross: Path) -> None:
    base = InOrder()
    RerankingRetriever(base, cross, 2).search(["heart"], 4)
    RerankingRetriever(base, cross, len(PASSAGES)).search(["heart"], 1)
    assert base.asked == [4, 6]
    with pytest.raises(ValueError, match="100"):
        RerankingRetriever(base, cross, 100).search(["heart"], 1)


def test_what_is_no_cross_encoder(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="3 outputs"):
        RerankingRetriever(InOrder(), save_bert(tmp_path / "three", 3, labels=3), 5)
    with pytest.raises(EngineError, match="minilm is not a cross-encoder"):
        RerankingRetriever(InOrder(), "minilm", 5)
    with pytest.raises(EngineError, match="no such model folder"):
        RerankingRetriever(InOrder(), tmp_path / "nowhere", 5)
