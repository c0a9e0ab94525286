"""Retrievers, engines and benchmarks of the user's own, as a spec names them."""

import pytest

from medexam.errors import DatasetError, SpecError
from medexam.measures import find_benchmark
from medexam.process import background_loop
from medexam.retrievers import plan_retriever
from medexam.serve import build_engine, known_model
from medexam.specs import DatasetSpec, ModelSpec, RetrieverSpec

CODE = """
class Finder:
    digest = "x"
    def __init__(self, passages=(), depth=1):
        self.passages, self.depth = passages, depth
    def search(self, queries, k):
        return [[] for _ in queries]

class Silent:
    def __init__(self, text="x"):
        self.text = text

class Nothing:
    pass
"""


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    return path


def test_a_retriever_is_known_by_source_arguments_and_corpus(code, tmp_path):
    spec = RetrieverSpec(kind=f"{code}:Finder", args={"depth": 2})
    planned = plan_retriever(spec)
    assert planned.open(tmp_path).depth == 2
    assert str(code) not in str(planned.identity)
    assert planned.identity != plan_retriever(RetrieverSpec(kind=f"{code}:Finder", args={"depth": 3})).identity
    (tmp_path / "corpus.jsonl").write_text('{"id": "a", "content": "A text."}\n')
    with_corpus = plan_retriever(RetrieverSpec(kind=f"{code}:Finder", corpus=tmp_path / "corpus.jsonl"))
    assert [passage.id for passage in with_corpus.open(tmp_path).passages] == ["a"]
    code.write_text(f"{CODE}\n")
    assert plan_retriever(spec).identity != planned.identity
    with pytest.raises(SpecError, match="has no search"):
        plan_retriever(RetrieverSpec(kind=f"{code}:Nothing")).open(tmp_path)


def test_an_engine_is_known_by_source_and_arguments(code):
    spec = ModelSpec(engine=f"{code}:Silent", args={"text": "y"})
    assert spec.label == "Silent"
    assert known_model(spec)["args"] == {"text": "y"}
    assert str(code) not in str(known_model(spec))
    with pytest.raises(SpecError, match="lacks concurrency, complete, info, aclose"):
        background_loop().run(build_engine(spec))


def test_a_benchmark_that_is_none_is_named(code):
    with pytest.raises(DatasetError, match="is type, not a subclass"):
        find_benchmark(DatasetSpec(name=f"{code}:Nothing"))
    with pytest.raises(DatasetError, match="there is no file"):
        find_benchmark(DatasetSpec(name=f"{code.parent}/gone.py:Nothing"))
