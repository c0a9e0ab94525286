"""The benchmark of a data set: that which its entry in the catalogue names, or that of its form or kind."""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import Any, NoReturn

from medexam.errors import DatasetError, SpecError
from medexam.measures.benchmarks.base import Benchmark
from medexam.measures.benchmarks.choice import ChoiceBenchmark, OwnChoiceBenchmark
from medexam.measures.benchmarks.words import ExampleBenchmark, ShortAnswerBenchmark, SpanBenchmark
from medexam.plugins import load_object
from medexam.questions import Scoring
from medexam.specs import DatasetSpec
from medexam.specs.base import BENCHMARKS, short_name
from medexam.specs.catalogue import find_entry

AnyBenchmark = Benchmark[Any, Any]
_IN_WORDS = {"short_answer": ShortAnswerBenchmark, "spans": SpanBenchmark, "examples": ExampleBenchmark}
_BY_FORM: Mapping[str, Callable[[str], AnyBenchmark]] = MappingProxyType({"choice": ChoiceBenchmark, **_IN_WORDS})
"""Form of a data set in the catalogue -> the benchmark where its entry names none."""
_OWN: dict[str, AnyBenchmark] = {}
"""The user's own benchmarks whose code this process has run, by name."""


def find_benchmark(spec: DatasetSpec) -> AnyBenchmark:
    """Find the benchmark of a data set: that of its kind if the questions are one's own, else that of its name.

    Raises `DatasetError` if the name is code of the user's own that makes none.
    """
    if spec.is_own:
        return _build_own(spec.name)
    if spec.kind is None:
        return _build(spec.name)
    if spec.kind == "choice":
        return OwnChoiceBenchmark("choice", None if spec.scoring is None else Scoring(spec.scoring.penalty))
    return _IN_WORDS[spec.kind](spec.kind)


def find_stored_benchmark(spec: DatasetSpec, *, in_words: bool) -> AnyBenchmark:
    """Find the benchmark of a stored run without running code of the user's own.

    Where this process has not run that code yet, it is one that shows stored scores and makes none.
    """
    if not spec.runs_code or spec.name in _OWN:
        return find_benchmark(spec)

    def refuse(*_: object) -> NoReturn:
        raise DatasetError(
            f"{spec.called} is a benchmark of your own, which loads and scores its questions itself: read its code, "
            "then let `medexam report --rescore RUN...` or `medexam compare --rescore RUN...` run it"
        )

    kind: type[AnyBenchmark] = SpanBenchmark if in_words else OwnChoiceBenchmark
    methods: dict[str, Any] = {"load": refuse, "score": refuse, "item_scores": lambda *_: {}}
    stored: AnyBenchmark = type("Stored", (kind,), methods)(spec.called)
    return stored


@cache
def _build(name: str) -> AnyBenchmark:
    """Build the benchmark of a data set in the catalogue."""
    entry = find_entry(name)
    if not entry.benchmark and entry.form not in _BY_FORM:
        raise DatasetError(f"{name}: no benchmark scores questions of the form {entry.form}: its entry must name one")
    make = load_object(entry.benchmark, BENCHMARKS) if entry.benchmark else _BY_FORM[entry.form]
    benchmark: AnyBenchmark = make(name)
    benchmark.scoring = entry.scoring
    return benchmark


def _build_own(name: str) -> AnyBenchmark:
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
