"""DrQA's TF-IDF on disk beside a computation by hand, with real questions as queries."""

import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
from medexam.retrievers import Passage, build_corpus, hashed_terms, load_corpus, plan_retriever, stream_corpus
from medexam.retrievers.corpora import StreamedCorpus
from medexam.retrievers.hashed_terms import HashedTfidfRetriever
from medexam.specs import DatasetSpec, RetrieverSpec

SAMPLE = Path(__file__).parent / "corpus_sample"


def _terms(text: str) -> list[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS
    from sklearn.utils import murmurhash3_32

    tokens = re.findall(r"\w+|[^\w\s]", text.lower())
    fit = {token for token in tokens if re.match(r"\w", token) and token not in STOPWORDS_EN_PLUS}
    words = [token for token in tokens if token in fit]
    words += [f"{a} {b}" for a, b in pairwise(tokens) if a in fit and b in fit]
    return [murmurhash3_32(word, positive=True) % 2**24 for word in words]


def test_scores_are_drqas(tmp_path, monkeypatch) -> None:
    # Several blocks of several pages.
    monkeypatch.setattr(hashed_terms, "BLOCK", 20)
    monkeypatch.setattr(hashed_terms, "PAGE", 5)
    corpus = load_corpus(SAMPLE)
    queries = [q.stem for q in load_exam_set(DatasetSpec(name="headqa_sample", language="en")).questions][:20]
    retriever = HashedTfidfRetriever(stream_corpus(SAMPLE), "en", tmp_path)
    found = retriever.search(queries, 3)
    documents = [Counter(_terms(passage.text)) for passage in corpus.passages]
    n = len(documents)
    df = Counter(term for document in documents for term in document)
    idf = {term: max(0.0, math.log((n - count + 0.5) / (count + 0.5))) for term, count in df.items()}
    for query, hits in zip(queries, found, strict=True):
        counts = Counter(_terms(query))
        scores = [
            sum(
                math.log1p(counts[term]) * math.log1p(document[term]) * idf[term] ** 2
                for term in counts.keys() & document.keys()
            )
            for document in documents
        ]
        best = sorted((row for row in range(n) if scores[row] > 0), key=lambda row: -scores[row])[:3]
        assert [hit.passage for hit in hits] == [corpus.passages[row] for row in best]
        assert [hit.score for hit in hits] == pytest.approx([scores[row] for row in best])
    assert not list(tmp_path.rglob("block*.npy"))


def test_another_process_finds_it_on_disk(tmp_path, monkeypatch) -> None:
    corpus = load_corpus(SAMPLE)
    first = HashedTfidfRetriever(corpus, "en", tmp_path).search(["pain in the chest"], 2)
    monkeypatch.setattr(HashedTfidfRetriever, "_build", None)
    assert HashedTfidfRetriever(corpus, "en", tmp_path).search(["pain in the chest"], 2) == first
    assert HashedTfidfRetriever(corpus, "es", tmp_path).digest != HashedTfidfRetriever(corpus, "en", tmp_path).digest


def test_a_spec_names_it_and_keeps_no_passage_in_memory(tmp_path) -> None:
    planned = plan_retriever(RetrieverSpec(kind="hashed_tfidf", corpus=SAMPLE))
    assert isinstance(planned.corpus, StreamedCorpus)
    assert planned.size == len(load_corpus(SAMPLE).passages)
    hits = planned.open(tmp_path).search(["pain in the chest", "zzz"], 1)
    assert [len(ranking) for ranking in hits] == [1, 0]


def test_a_corpus_without_words_is_refused_and_nothing_is_left(tmp_path) -> None:
    corpus = build_corpus("none", [Passage("a", "", "of the", "x")], source="x")
    with pytest.raises(DatasetError, match="has only stop words"):
        HashedTfidfRetriever(corpus, "en", tmp_path).search(["x"], 1)
    assert not list(tmp_path.iterdir())
