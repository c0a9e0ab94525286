"""Exams with numbered options, those that ship and those of one's own."""

from types import MappingProxyType
from typing import Any

from medexam.datasets import load_exam_set
from medexam.measures.benchmarks.base import USAGE, Benchmark, Predictions
from medexam.measures.evidence.kinds import EVIDENCE_COLUMNS
from medexam.measures.results import ScoredRun
from medexam.measures.scoring import compute_metrics
from medexam.predictions import Prediction, Status
from medexam.questions import AnswerKey, ExamSet, Gold, Question, Scoring
from medexam.specs import DatasetSpec


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
