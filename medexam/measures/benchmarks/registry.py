"""The benchmark of a data set: that which its entry in the catalogue names, or that of its form or kind."""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import Any

from medexam.errors import DatasetError, SpecError
from medexam.measures.benchmarks.base import Benchmark, ItemScores, Predictions
from medexam.measures.benchmarks.choice.benchmark import ChoiceBenchmark, OwnChoiceBenchmark
from medexam.measures.benchmarks.words.examples import ExampleBenchmark
from medexam.measures.benchmarks.words.spans import ShortAnswerBenchmark, SpanBenchmark
from medexam.measures.results import ScoredRun
from medexam.plugins import load_object
from medexam.questions import AnySet, Scoring
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import find_entry
from medexam.specs.names import BENCHMARKS, short_name

_KINDS: Mapping[str, Benchmark[Any, Any]] = MappingProxyType(
    {
        each.name: each
        for each in (
            OwnChoiceBenchmark("choice"),
            ShortAnswerBenchmark("short_answer"),
            SpanBenchmark("spans"),
            ExampleBenchmark("examples"),
        )
    }
)
"""Kind of questions of one's own -> its benchmark."""
_BY_FORM: Mapping[str, Callable[[str], Benchmark[Any, Any]]] = MappingProxyType(
    {
        "choice": ChoiceBenchmark,
        "short_answer": ShortAnswerBenchmark,
        "spans": SpanBenchmark,
        "explanations": SpanBenchmark,
    }
)
"""Form of a data set in the catalogue -> the benchmark where its entry names none."""


def find_benchmark(spec: DatasetSpec) -> Benchmark[Any, Any]:
    """Find the benchmark of a data set: that of its kind if the questions are one's own, else that of its name.

    Raises `DatasetError` if the name is code of the user's own that makes none.
    """
    if spec.is_own:
        return _build_own(spec.name)
    if spec.kind == "choice" and spec.scoring is not None:
        return OwnChoiceBenchmark("choice", Scoring(spec.scoring.penalty))
    return _KINDS[spec.kind] if spec.kind is not None else _build(spec.name)


def find_stored_benchmark(spec: DatasetSpec, *, in_words: bool) -> Benchmark[Any, Any]:
    """Find the benchmark of a stored run without running code of the user's own.

    Where this process has not run that code yet, it is one that shows stored scores and makes none.
    """
    if spec.runs_code and spec.name not in _OWN:
        return (_StoredWords if in_words else _StoredChoice)(spec.called)
    return find_benchmark(spec)


@cache
def _build(name: str) -> Benchmark[Any, Any]:
    """Build the benchmark of a data set in the catalogue."""
    entry = find_entry(name)
    if not entry.benchmark and entry.form not in _BY_FORM:
        raise DatasetError(f"{name}: no benchmark scores questions of the form {entry.form}: its entry must name one")
    make = load_object(entry.benchmark, BENCHMARKS) if entry.benchmark else _BY_FORM[entry.form]
    benchmark: Benchmark[Any, Any] = make(name)
    benchmark.scoring = entry.scoring
    return benchmark


def _build_own(name: str) -> Benchmark[Any, Any]:
    """Build an instance of the user's class, with the name that tables call it by."""
    if name in _OWN:
        return _OWN[name]
    try:
        benchmark: Any = load_object(name, BENCHMARKS)
        if isinstance(benchmark, type) and issubclass(benchmark, Benchmark):
            arguments = {"name": short_name(name)} if "name" in signature(benchmark).parameters else {}
            benchmark = benchmark(**arguments)
    except Exception as error:
        reason = error if isinstance(error, SpecError) else f"making it failed: {type(error).__name__}: {error}"
        raise DatasetError(f"benchmark {name}: {reason}") from error
    if not isinstance(benchmark, Benchmark):
        raise DatasetError(f"{name} is {type(benchmark).__name__}, not a subclass of medexam.measures.Benchmark")
    return _OWN.setdefault(name, benchmark)


_OWN: dict[str, Benchmark[Any, Any]] = {}
"""The user's own benchmarks whose code this process has run, by name."""


class _Stored:
    """Shows the stored scores of a benchmark whose code is not run."""

    name: str

    def score(self, items: AnySet, predictions: Predictions) -> ScoredRun:
        """Raise `DatasetError`: only its code can."""
        return self.load(items)  # type: ignore[return-value]

    def load(self, spec: object) -> AnySet:
        """Raise `DatasetError`: only its code can."""
        raise DatasetError(
            f"{self.name} is a benchmark of your own, which loads and scores its questions itself: read its code, then "
            "let `medexam report --rescore RUN...` or `medexam compare --rescore RUN...` run it"
        )

    def item_scores(self, items: AnySet, predictions: Predictions) -> ItemScores:
        """Return none, since only its code can."""
        return {}


class _StoredWords(_Stored, SpanBenchmark):
    """Of answers in words."""


class _StoredChoice(_Stored, OwnChoiceBenchmark):
    """Of numbered options."""
