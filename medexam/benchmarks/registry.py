"""The benchmarks by the names of their data sets, and by the kinds of questions of one's own."""

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import Any

from medexam.benchmarks.answers import RunAnswers
from medexam.benchmarks.base import Benchmark, Predictions, Scores
from medexam.benchmarks.choice.benchmark import ChoiceBenchmark, OwnChoiceBenchmark
from medexam.benchmarks.choice.comparison import PairedExams
from medexam.benchmarks.words.examples import ExampleBenchmark
from medexam.benchmarks.words.spans import OpenExamBenchmark, ShortAnswerBenchmark, SpanBenchmark
from medexam.errors import DatasetError, SpecError
from medexam.metrics.results import ScoredRun
from medexam.plugins import load_object
from medexam.questions import AnySet, ExamSet
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


def find_stored_benchmark(spec: DatasetSpec, *, in_words: bool) -> Benchmark[Any, Any, Any]:
    """Find the benchmark of a stored run without running code of the user's own.

    Where this process has not run that code yet, it is one that shows stored scores and makes none.
    """
    if spec.runs_code and spec.name not in _OWN:
        return (_StoredWords if in_words else _StoredChoice)(spec.called)
    return find_benchmark(spec)


@cache
def _build_shipped(name: str) -> Benchmark[Any, Any, Any]:
    """Build an instance of the class that a companion registers."""
    benchmark: Benchmark[Any, Any, Any] = load_object(name, BENCHMARKS)(name)
    return benchmark


def _build_own(name: str) -> Benchmark[Any, Any, Any]:
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
        raise DatasetError(f"{name} is {type(benchmark).__name__}, not a subclass of medexam.benchmarks.Benchmark")
    return _OWN.setdefault(name, benchmark)


_OWN: dict[str, Benchmark[Any, Any, Any]] = {}
"""The user's own benchmarks whose code this process has run, by name."""


class _Stored:
    """Shows the stored scores of a benchmark whose code is not run."""

    name: str

    def score(self, items: AnySet, predictions: Predictions) -> ScoredRun[Any]:
        """Raise `DatasetError`: only its code can."""
        return self.load(items)  # type: ignore[return-value]

    def load(self, spec: object) -> AnySet:
        """Raise `DatasetError`: only its code can."""
        raise DatasetError(
            f"{self.name} is a benchmark of your own, which loads and scores its questions itself: read its code, then "
            "let `medexam report --rescore RUN...` or `medexam compare --rescore RUN...` run it"
        )

    def item_scores(self, items: AnySet, predictions: Predictions) -> Scores:
        """Return none, since only its code can."""
        return {}


class _StoredWords(_Stored, SpanBenchmark):
    """Of answers in words."""


class _StoredChoice(_Stored, OwnChoiceBenchmark):
    """Of numbered options."""

    def compare(self, items: ExamSet, sets: Sequence[ExamSet], runs: Sequence[RunAnswers]) -> PairedExams:
        """Raise `DatasetError`: only its code can."""
        return self.load(items)  # type: ignore[return-value]
