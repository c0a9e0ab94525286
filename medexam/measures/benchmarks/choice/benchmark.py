"""Exams with numbered options, those that ship and those of one's own."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from medexam.datasets import load_exam_set
from medexam.measures import ScoredRun, compute_metrics
from medexam.measures.benchmarks.base import AnswerChoice, Benchmark, Predictions
from medexam.measures.evidence.kinds import evidence_columns
from medexam.predictions import Prediction, Status
from medexam.questions import AnswerKey, ExamSet, Gold, Question, Scoring
from medexam.specs import DatasetSpec

if TYPE_CHECKING:
    import pyarrow as pa


class ChoiceBenchmark(Benchmark[Question, AnswerKey]):
    """Questions with numbered options, scored as the exam boards score them."""

    family = "exams"
    right_or_wrong = True
    clusters = "exams"
    facets = MappingProxyType({"discipline": "Discipline", "year": "Year"})

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

    def is_right(self, outcome: AnswerChoice, gold: Gold) -> bool:
        """Return whether the right option was chosen."""
        return gold.accepts(outcome.answer)

    def expected(self, gold: Gold) -> int:
        """Return the printed number of the right option."""
        return gold.number

    def golds_agree(self, key: str, sets: Sequence[ExamSet]) -> bool:
        """Return whether every key holds an answer to the question, and the same one, in whatever language."""
        if not all(key in exam_set.golds for exam_set in sets):
            return False
        first, *others = (each.golds[key] for each in sets)
        # Runs on the same data share the object, which is quicker to see than that two are equal.
        return all(other is first or other == first for other in others)

    def columns(self, items: Mapping[str, Any]) -> "list[tuple[str, pa.DataType]]":
        """List exam, gold, answer and evidence of each question; `number`, `gold` and `answer` are as printed.

        `right` is false for a question without an answer and null for one whose asking failed, so that its mean is the
        accuracy.
        """
        import pyarrow as pa

        names = (
            *("question", "exam", "year", "discipline", "number", "language", "option_count", "has_image", "gold"),
            *("program", "model", "status", "reason", "answer", "right", "reply", "rationale"),
            *("prompt_tokens", "completion_tokens", "latency_s", "finish_reason"),
        )
        types = dict.fromkeys(names, pa.string()) | dict.fromkeys(("has_image", "right"), pa.bool_())
        types |= dict.fromkeys(("year", "number", "option_count", "gold", "answer"), pa.int32())
        types |= dict.fromkeys(("prompt_tokens", "completion_tokens"), pa.int64()) | {"latency_s": pa.float64()}
        return [*types.items(), *evidence_columns().items()]

    def row(
        self, item: Question, gold: Gold, prediction: Prediction, items: Mapping[str, Mapping[str, float]]
    ) -> dict[str, Any]:
        """Return the values of `columns` that are not those of every prediction."""
        return {
            **self.place(item),
            "language": item.language,
            "option_count": len(item.options),
            "has_image": item.image is not None,
            "gold": gold.number,
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

    def columns(self, items: Mapping[str, Any]) -> "list[tuple[str, pa.DataType]]":
        """List the same, and `also_right`: the numbers of further right options, empty if there are none."""
        import pyarrow as pa

        return [*super().columns(items), ("also_right", pa.list_(pa.int32()))]

    def row(
        self, item: Question, gold: Gold, prediction: Prediction, items: Mapping[str, Mapping[str, float]]
    ) -> dict[str, Any]:
        """Return the values of `columns` that are not those of every prediction."""
        return super().row(item, gold, prediction, items) | {"also_right": list(gold.others)}
