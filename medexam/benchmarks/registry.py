"""The benchmarks by the names of their data sets."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from medexam.benchmarks.base import Benchmark
from medexam.benchmarks.choice.benchmark import ChoiceBenchmark
from medexam.benchmarks.words.cliniqlink import ClinIQLink
from medexam.benchmarks.words.spans import SpanBenchmark

_ALL: tuple[Benchmark[Any, Any, Any], ...] = (
    ChoiceBenchmark("headqa_sample"),
    ChoiceBenchmark("headqa_v1"),
    ChoiceBenchmark("headqa_v2"),
    ChoiceBenchmark("casimedicos"),
    SpanBenchmark("casimedicos_spans"),
    ClinIQLink("cliniqlink"),
)
BENCHMARKS: Mapping[str, Benchmark[Any, Any, Any]] = MappingProxyType({each.name: each for each in _ALL})


def find_benchmark(name: str) -> Benchmark[Any, Any, Any]:
    """The benchmark of the data set called `name`, which a spec has checked."""
    return BENCHMARKS[name]
