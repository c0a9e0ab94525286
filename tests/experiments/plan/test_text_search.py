"""Queries that come up while questions are asked: they share passes, and each gets what it would get alone."""

import asyncio
import pickle
import threading
from pathlib import Path

import cloudpickle
import pytest

from medexam.errors import EngineError
from medexam.experiments import Retrieval, plan_retrieval
from medexam.experiments.plan.passage_lookup import HitCache, Preview
from medexam.experiments.plan.text_search import TextSearch
from medexam.retrievers import Hit, Passage, plan_retriever
from medexam.specs import RetrieverSpec
from medexam.specs.programs.behind_passages import IterativeRetrievalSpec

CORPUS = Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"
SPEC = IterativeRetrievalSpec(kind="iterative_retrieval", retriever={"kind": "bm25"})


class Slow:
    """Finds a passage named after the query; the first pass waits until it is let go."""

    digest = "slow"

    def __init__(self) -> None:
        self.passes: list[list[str]] = []
        self.begun, self.go = threading.Event(), threading.Event()

    def search(self, queries, k):
        self.passes.append(list(queries))
        self.begun.set()
        assert self.go.wait(10)
        return [[Hit(Passage(query, "", f"on {query}", "test"), 1.0, 1)] * k for query in queries]


def _retrieval(tmp_path, retriever) -> Retrieval:
    return Retrieval(SPEC.retrieval, lambda _: retriever, HitCache(tmp_path, "digest"), size=9)


def test_queries_that_come_during_a_pass_share_the_next(tmp_path) -> None:
    slow = Slow()
    search = TextSearch(_retrieval(tmp_path, slow))

    async def ask() -> list[str]:
        first = asyncio.create_task(search.asearch(["a"], 1))
        await asyncio.to_thread(slow.begun.wait, 10)
        others = [asyncio.create_task(search.asearch([f"q{number}", "shared"], 1)) for number in range(50)]
        given_up = asyncio.create_task(search.asearch(["given up"], 1))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.sleep(0)
        slow.go.set()
        found = [*await first, *(hits for each in await asyncio.gather(*others) for hits in each)]
        return [hits[0].passage.id for hits in found]

    names = asyncio.run(ask())
    assert names == ["a", *(name for number in range(50) for name in (f"q{number}", "shared"))]
    assert [sorted(queries) for queries in slow.passes] == [["a"], sorted(["shared", *(f"q{n}" for n in range(50))])]
    assert [hit.passage.id for hit in Preview(_retrieval(tmp_path, None)).search(["q7", "never"], 1)[0]] == ["q7"]


def test_what_is_known_is_not_searched_again(tmp_path) -> None:
    slow = Slow()
    slow.go.set()
    search = TextSearch(_retrieval(tmp_path, slow))
    assert search.search(["a", "b"], 2) == search.search(["a", "b"], 2)
    assert search.search(["b", "c"], 2)[0][0].passage.id == "b"
    assert slow.passes == [["a", "b"], ["c"]]


def test_a_fault_reaches_whoever_asked(tmp_path) -> None:
    class Broken:
        digest = "broken"

        def search(self, queries, k):
            raise EngineError("no encoder")

    with pytest.raises(EngineError, match="no encoder"):
        TextSearch(_retrieval(tmp_path, Broken())).search(["a"], 1)


def test_what_searches_can_be_sent_to_a_worker(question, tmp_path) -> None:
    spec = SPEC.model_copy(update={"retriever": RetrieverSpec(kind="bm25", corpus=str(CORPUS))})
    here = plan_retrieval(spec.retrieval, plan_retriever(spec.retriever), tmp_path, "en")
    assert here.fill([question]) == 0
    there = pickle.loads(cloudpickle.dumps(here.only_for([question])))
    assert TextSearch(there).search(["vitamin deficiency"], 2) == TextSearch(here).search(["vitamin deficiency"], 2)
