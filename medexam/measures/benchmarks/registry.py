"""The benchmark of a data set: that which its entry in the catalogue names, or that of its form or kind."""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import Any, NoReturn

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, SpecError
from medexam.measures.benchmarks.base import USAGE, Benchmark, Predictions
from medexam.measures.benchmarks.words import ExampleBenchmark, ShortAnswerBenchmark, SpanBenchmark
from medexam.measures.evidence.kinds import EVIDENCE_COLUMNS
from medexam.measures.results import ScoredRun
from medexam.measures.scoring import compute_metrics
from medexam.plugins import load_object
from medexam.predictions import Prediction, Status
from medexam.questions import AnswerKey, ExamSet, Gold, Question, Scoring
from medexam.specs import DatasetSpec
from medexam.specs.base import BENCHMARKS, short_name
from medexam.specs.catalogue import find_entry


class ChoiceBenchmark(Benchmark[Question, AnswerKey]):
    """Questions with numbered options, scored as the exam boards score them."""

    family = "exams"
    right_or_wrong = True
    clusters = "exams"
    facets = MappingProxyType({"discipline": "Discipline", "year": "Year"})
    columns = MappingProxyType(
        {
            **dict.fromkeys(("question", "exam", "discipline", "language"), "string"),
            **dict.fromkeys(("year", "number", "option_count", "gold"), "int32"),
            "also_right": "[int32]",
            **dict.fromkeys(("program", "model", "status", "reason", "reply", "rationale"), "string"),
            **dict.fromkeys(("has_image", "right"), "bool"),
            "answer": "int32",
            **USAGE,
            **EVIDENCE_COLUMNS,
        }
    )
    """Numbers are as printed; `also_right` holds those of further right options. `right` is false for a question
    without an answer and null for one whose asking failed, so that its mean is the accuracy."""

    def __init__(self, name: str, scoring: Scoring | None = None) -> None:
        self.name, self.scoring = name, scoring

    def load(self, spec: DatasetSpec) -> ExamSet:
        """Load the questions that `spec` selects, with their answer key; raises as `load_exam_set` does."""
        return load_exam_set(spec)

    def score(self, items: ExamSet, predictions: Predictions) -> ScoredRun:
        """Compute accuracy, what `scoring` adds to it, and all breakdowns."""
        return ScoredRun(compute_metrics(items.questions, items.golds, predictions, self.scoring), {})

    def cluster(self, item: Question) -> str:
        """Return the question's exam; the question itself where a group stands for an exam."""
        exam = item.exam
        return item.key if exam.independent else f"{exam.name}/{exam.year}/{exam.discipline}"

    def expected(self, gold: Gold) -> int:
        """Return the printed number of the right option."""
        return gold.number

    def row(self, item: Question, gold: Gold, prediction: Prediction) -> dict[str, Any]:
        """Return the values of `columns` that are not those of every prediction."""
        return super().row(item, gold, prediction) | {
            "option_count": len(item.options),
            "has_image": item.image is not None,
            "also_right": list(gold.others),
            "right": None if prediction.status is Status.FAILED else gold.accepts(prediction.answer),
        }

    def place(self, item: Question) -> dict[str, Any]:
        """Return exam, year, discipline and the printed number."""
        exam = item.exam
        return {"exam": exam.name, "year": exam.year, "discipline": exam.discipline, "number": item.number}

    def wording(self, item: Question, gold: Gold) -> dict[str, Any]:
        """Return every text of a question; fields that only some data sets have stand under their own names."""
        fields = item.model_dump(mode="json", exclude={"key", "exam", "number", "language", "options"})
        texts = {name: value for name, value in fields.items() if value is not None}
        return {**texts, "options": [[option.number, option.text] for option in item.options]}


class OwnChoiceBenchmark(ChoiceBenchmark):
    """Multiple-choice questions of one's own, in subjects; no paper and no people's results to stand beside."""

    clusters = "questions, over exams if columns.exam is set"
    facets = MappingProxyType({"discipline": "Subject", "year": "Year"})


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
    entry = find_entry(name)
    if not entry.benchmark and entry.form not in _BY_FORM:
        raise DatasetError(f"{name}: no benchmark scores questions of the form {entry.form}: its entry must name one")
    make = load_object(entry.benchmark, BENCHMARKS) if entry.benchmark else _BY_FORM[entry.form]
    benchmark: AnyBenchmark = make(name)
    benchmark.scoring = entry.scoring
    return benchmark


def _build_own(name: str) -> AnyBenchmark:
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
