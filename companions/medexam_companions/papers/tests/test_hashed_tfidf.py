"""DrQA's TF-IDF beside a computation by hand, with real questions as queries."""

import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.retrievers import load_corpus, plan_retriever
from medexam.specs import DatasetSpec, RetrieverSpec

SAMPLE = Path(__file__).parents[4] / "tests" / "retrievers" / "corpus_sample"


def _terms(text: str) -> list[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS
    from sklearn.utils import murmurhash3_32

    tokens = re.findall(r"\w+|[^\w\s]", text.lower())
    fit = {token for token in tokens if re.match(r"\w", token) and token not in STOPWORDS_EN_PLUS}
    words = [token for token in tokens if token in fit]
    words += [f"{a} {b}" for a, b in pairwise(tokens) if a in fit and b in fit]
    return [abs(murmurhash3_32(word)) % 2**24 for word in words]


def test_scores_are_drqas(tmp_path) -> None:
    corpus = load_corpus(SAMPLE)
    queries = [q.stem for q in load_exam_set(DatasetSpec(name="headqa_sample", language="en")).questions][:20]
    planned = plan_retriever(RetrieverSpec(kind="hashed_tfidf", corpus=SAMPLE))
    assert planned.size == len(corpus.passages)
    found = planned.open(tmp_path).search([*queries, "zzz"], 3)
    documents = [Counter(_terms(passage.text)) for passage in corpus.passages]
    n = len(documents)
    df = Counter(term for document in documents for term in document)
    idf = {term: max(0.0, math.log((n - count + 0.5) / (count + 0.5))) for term, count in df.items()}
    for query, hits in zip(queries, found, strict=False):
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
    assert found[-1] == []
