"""Every kind of evidence, and what runs, tables and the page say of all of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from medexam.items import AnswerKey
from medexam.predictions.core import Status
from medexam.predictions.evidence.citations import CITATIONS, CitationMetrics
from medexam.predictions.evidence.kind import Figures, Kind
from medexam.predictions.evidence.rounds import ROUNDS, QueryMetrics
from medexam.predictions.evidence.verdicts import VERDICTS, VerifiedMetrics
from medexam.predictions.prediction import Prediction
from medexam.questions import Question
from medexam.tables import Captioned

KINDS: tuple[Kind[Any, Any], ...] = (VERDICTS, ROUNDS, CITATIONS)
"""In the order of a report's tables."""


class EvidenceMetrics(Figures):
    """What the passages' own kinds tell; each part is None if the program does no such thing."""

    verified: VerifiedMetrics | None = None
    queries: QueryMetrics | None = None
    citations: CitationMetrics | None = None


def measure_evidence(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> dict[str, Any]:
    """Make the figures of every kind that the predictions hold, as fields of `EvidenceMeasures`.

    Those of failed predictions enter none. Raises `DatasetError` if `key` lacks one of the questions.
    """
    selection = [predictions[question.key] for question in questions if question.key in predictions]
    answers = [
        (prediction, key[prediction.question]) for prediction in selection if prediction.status is not Status.FAILED
    ]
    figures: dict[str, Any] = {}
    for kind in KINDS:
        if (measures := kind.measure(answers)) is not None:
            group, _, name = kind.figures.rpartition(".")
            (figures.setdefault(group, {}) if group else figures)[name] = measures
    return figures


def evidence_tables(metrics: Any) -> list[Captioned]:
    """Show the tables of every kind that a run's metrics hold, each with its caption."""
    pairs = ((kind, kind.of(metrics)) for kind in KINDS)
    return [table for kind, figures in pairs if figures is not None for table in kind.tables(figures)]


def evidence_entry(prediction: Prediction) -> dict[str, Any]:
    """Return what the page shows of a prediction's evidence, JSON-ready; a value of None is left out."""
    return {name: value for kind in KINDS for name, value in kind.page(prediction).items()}
