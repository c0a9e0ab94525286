"""A benchmark: a class with its own `load`, scored and shown as all multiple-choice questions are."""

from medexam import Question
from medexam.datasets import make_exam_set
from medexam.measures import OwnChoiceBenchmark
from medexam.questions import ExamSet
from medexam.specs import DatasetSpec


class Sums(OwnChoiceBenchmark):
    """Sums of small numbers."""

    def load(self, spec: DatasetSpec) -> ExamSet:
        """Select of twenty sums as `spec` says."""
        rows = [(Question.of(f"{n} + 2 = ?", [str(n), str(n + 1), str(n + 2)], key=f"sums/{n}"), 3) for n in range(20)]
        return make_exam_set(spec, rows, source="made by code", version="1")
