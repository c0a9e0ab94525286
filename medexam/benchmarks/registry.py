"""The benchmarks by the names of their data sets, and by the kinds of questions of one's own."""

from collections.abc import Mapping
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import Any

from medexam.benchmarks.base import Benchmark
from medexam.benchmarks.choice.benchmark import ChoiceBenchmark, OwnChoiceBenchmark
from medexam.benchmarks.words.examples import ExampleBenchmark
from medexam.benchmarks.words.spans import OpenExamBenchmark, ShortAnswerBenchmark, SpanBenchmark
from medexam.errors import DatasetError, SpecError
from medexam.metrics.results import RunMetrics
from medexam.plugins import load_object, load_part
from medexam.specs import DatasetSpec
from medexam.specs.names import BENCHMARKS, short_name

_PAPERS = frozenset({"headqa-v2", "paper", "headqa-v1"})
_ALL: tuple[Benchmark[Any, Any, Any], ...] = (
    ChoiceBenchmark("headqa_sample", _PAPERS),
    ChoiceBenchmark("headqa_study", _PAPERS),
    ChoiceBenchmark("headqa_v1", _PAPERS),
    ChoiceBenchmark("headqa_v2", _PAPERS),
    ChoiceBenchmark("casimedicos", _PAPERS),
    *(
        OpenExamBenchmark(name)
        for name in ("headqa_sample_open", "headqa_study_open", "headqa_v1_open", "headqa_v2_open")
    ),
    SpanBenchmark("casimedicos_spans"),
    OwnChoiceBenchmark("choice"),
    ShortAnswerBenchmark("short_answer"),
    SpanBenchmark("spans"),
    ExampleBenchmark("examples"),
)
_BENCHMARKS: Mapping[str, Benchmark[Any, Any, Any]] = MappingProxyType({each.name: each for each in _ALL})


def find_benchmark(spec: DatasetSpec) -> Benchmark[Any, Any, Any]:
    """Find the benchmark of a data set: that of its kind if the questions are one's own, else that of its name.

    Raises `DatasetError` if the name is code of the user's own that makes none.
    """
    if spec.is_own:
        return _build_own(spec.name)
    name = spec.kind or spec.name
    return _BENCHMARKS.get(name) or _build_shipped(name)


def find_stored_benchmark(spec: DatasetSpec, metrics: RunMetrics | Mapping[str, Any]) -> Benchmark[Any, Any, Any]:
    """Find the benchmark of a stored run; where its own code is gone, one that shows `metrics` of that form."""
    try:
        return find_benchmark(spec)
    except DatasetError:
        kind = metrics.get("kind") if isinstance(metrics, Mapping) else getattr(metrics, "kind", None)
        return SpanBenchmark(spec.called) if kind == "tasks" else OwnChoiceBenchmark(spec.called)


@cache
def _build_shipped(name: str) -> Benchmark[Any, Any, Any]:
    """Build an instance of the class that a companion registers."""
    benchmark: Benchmark[Any, Any, Any] = load_part(name, BENCHMARKS)(name)
    return benchmark


@cache
def _build_own(name: str) -> Benchmark[Any, Any, Any]:
    """Build an instance of the user's class, with the name that tables call it by."""
    try:
        benchmark: Any = load_object(name, BENCHMARKS)
        if isinstance(benchmark, type) and issubclass(benchmark, Benchmark):
            arguments = {"name": short_name(name)} if "name" in signature(benchmark).parameters else {}
            benchmark = benchmark(**arguments)
    except Exception as error:
        reason = error if isinstance(error, SpecError) else f"making it failed: {type(error).__name__}: {error}"
        raise DatasetError(f"benchmark {name}: {reason}") from error
    if not isinstance(benchmark, Benchmark):
        raise DatasetError(f"{name} is {type(benchmark).__name__}, not a subclass of medexam.benchmarks.Benchmark")
    return benchmark
