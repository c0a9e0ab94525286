"""Exams with numbered options, those that ship and those of one's own."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from medexam.benchmarks.answers import RunAnswers
from medexam.benchmarks.base import AnswerChoice, Benchmark, Predictions
from medexam.benchmarks.choice import tables
from medexam.benchmarks.choice.comparison import PairedExams, compare_exams
from medexam.benchmarks.paired import TableRun
from medexam.datasets import load_exam_set
from medexam.metrics import Metrics, ScoredRun, compute_metrics, exam_averages
from medexam.predictions import Prediction, Status
from medexam.predictions.evidence.kinds import evidence_columns, evidence_tables
from medexam.questions import AnswerKey, ExamSet, Gold, Question
from medexam.specs import DatasetSpec
from medexam.tables import Captioned, Table

if TYPE_CHECKING:
    import pyarrow as pa


class ChoiceBenchmark(Benchmark[Question, AnswerKey, Metrics]):
    """Questions with numbered options, scored as the exam boards score them."""

    family = "exams"
    right_or_wrong = True
    plots = ("strategies", "years", "disciplines", "flips", "reliability", "thresholds", "relevance")
    metrics_type = Metrics
    published_legend = exam_averages.LEGEND
    clusters = "exams"
    facets = MappingProxyType({"discipline": "Discipline", "year": "Year"})
    overview = staticmethod(tables.scores_by_run)
    headline = staticmethod(tables.overall_scores)
    values = staticmethod(tables.exam_values)

    def __init__(self, name: str) -> None:
        self.name = name

    def breakdowns(self, metrics: Metrics, *, published: bool) -> list[Table]:
        """Show the scores by discipline, or what stands for it, by year, number of options and exam."""
        return tables.group_tables(metrics, published=published, group=self.facets["discipline"])

    def matrices(self, runs: Sequence[TableRun[Metrics]]) -> list[Captioned]:
        """Show the accuracy of several runs by the same."""
        return tables.matrices(runs, self.facets["discipline"])

    def legend(self, metrics: Sequence[Metrics]) -> str:
        """Explain how to read tables of runs with these metrics."""
        return tables.legend_of(metrics, self.clusters)

    def load(self, spec: DatasetSpec) -> ExamSet:
        """Load the questions that `spec` selects, with their answer key; raises as `load_exam_set` does."""
        return load_exam_set(spec)

    def score(self, items: ExamSet, predictions: Predictions) -> ScoredRun[Metrics]:
        """Compute accuracy, exam score, points and all breakdowns."""
        return ScoredRun(compute_metrics(items.questions, items.golds, predictions), {})

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

    def details(self, metrics: Metrics) -> list[Captioned]:
        """Show votes, places, scored options (calibration, position, abstention), passages, verdicts and citations."""
        return evidence_tables(metrics)

    def origin(self, metrics: Metrics) -> str:
        """Return ` of 30 exams`, for instance."""
        return f" of {metrics.exams} exams"

    def size(self, metrics: Metrics) -> dict[str, int]:
        """Count the exams that the questions come from."""
        return {"exams": len(metrics.by_exam)}

    def compare(self, items: ExamSet, sets: Sequence[ExamSet], runs: Sequence[RunAnswers]) -> PairedExams:
        """Compare by McNemar's test and differences over whole exams, with breakdowns and flipped questions."""
        keys = [question.key for question in items.questions]
        metrics = [run.metrics_of(keys) or compute_metrics(items.questions, items.golds, run) for run in runs]
        outcomes = [run.outcomes for run in runs]
        return compare_exams(items.questions, items.golds, outcomes, metrics, group=self.facets["discipline"].lower())


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

    def origin(self, metrics: Metrics) -> str:
        """Return ` of 3 groups`, by subject, year and exam."""
        return f" of {metrics.exams} groups" if metrics.exams > 1 else ""
