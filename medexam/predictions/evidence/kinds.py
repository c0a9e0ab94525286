"""Every kind of evidence, and what runs, tables and the page say of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from medexam.frozen_model import FrozenModel
from medexam.predictions.core import CorePrediction, Status
from medexam.predictions.evidence.citations import CITATIONS, CitationMetrics
from medexam.predictions.evidence.failures import FAILURES
from medexam.predictions.evidence.kind import Figures, Kind
from medexam.predictions.evidence.option_scores import OPTION_SCORES
from medexam.predictions.evidence.option_statistics import OptionScoreMetrics
from medexam.predictions.evidence.orders import ORDERS, OrderMetrics
from medexam.predictions.evidence.passages import PASSAGES, RetrievalMetrics
from medexam.predictions.evidence.rounds import ROUNDS, QueryMetrics
from medexam.predictions.evidence.verdicts import VERDICTS, VerifiedMetrics
from medexam.predictions.evidence.votes import VOTES, VoteMetrics
from medexam.predictions.prediction import Prediction
from medexam.questions import AnswerKey, Question
from medexam.tables import Captioned

if TYPE_CHECKING:
    import pyarrow as pa

KINDS: tuple[Kind[Any, Any], ...] = (
    VOTES,
    ORDERS,
    OPTION_SCORES,
    PASSAGES,
    VERDICTS,
    ROUNDS,
    CITATIONS,
    FAILURES,
)
"""In the order of a report's tables."""


_EVIDENCE = tuple(
    {field.name for field in fields(Prediction)} - {field.name for field in fields(CorePrediction)} - {"failure"}
)
"""The fields of evidence that a prediction may hold."""


class EvidenceMetrics(Figures):
    """What the passages' own kinds tell; each part is None if the program does no such thing."""

    verified: VerifiedMetrics | None = None
    queries: QueryMetrics | None = None
    citations: CitationMetrics | None = None


class EvidenceMeasures(FrozenModel):
    """What `metrics.json` holds of the evidence."""

    option_scores: OptionScoreMetrics | None = None
    """What the scores of the options tell; None if the program left none."""
    retrieval: RetrievalMetrics | None = None
    """What the passages tell; None if the program saw none."""
    evidence: EvidenceMetrics | None = None
    """What verdicts, queries and citations tell; None if the program has none."""
    votes: VoteMetrics | None = None
    """What several replies to each question tell; None if each had one."""
    orders: OrderMetrics | None = None
    """What several orders of the options tell; None if each question was shown in one."""

    @property
    def without_passages(self) -> int:
        """Scored questions whose query found no passage."""
        return 0 if self.retrieval is None else self.retrieval.without_passages


def measure_evidence(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> dict[str, Any]:
    """Make the figures of every kind that the predictions hold, as fields of `EvidenceMeasures`.

    Those of failed predictions enter none. Raises `DatasetError` if `key` lacks one of the questions.
    """
    keys = [question.key for question in questions if question.key in predictions]
    # Most programs leave none, and all predictions of a large run at once would not fit the memory.
    if all(getattr(one, name) is None for one in map(predictions.__getitem__, keys) for name in _EVIDENCE):
        return {}
    selection = map(predictions.__getitem__, keys)
    answers = [
        (prediction, key[prediction.question]) for prediction in selection if prediction.status is not Status.FAILED
    ]
    figures: dict[str, Any] = {}
    for kind in KINDS:
        if (measures := kind.measure(answers)) is not None:
            group, _, name = kind.figures.rpartition(".")
            (figures.setdefault(group, {}) if group else figures)[name] = measures
    return figures


def evidence_tables(metrics: object) -> list[Captioned]:
    """Show the tables of every kind that a run's metrics hold, each with its caption."""
    held = _figures(metrics)
    names = {kind.figures for kind, _ in held}
    return [table for kind, figures in held for table in kind.tables(figures, names)]


def evidence_headline(metrics: object) -> list[tuple[str, str, str]]:
    """List rows for a report's headline: what, value, and no chance level."""
    return [(name, value, "") for kind, figures in _figures(metrics) for name, value in kind.headline(figures)]


def evidence_values(metrics: object) -> dict[str, float | None]:
    """Map the names of the numbers that MLflow keeps to their values."""
    return {name: value for kind, figures in _figures(metrics) for name, value in kind.values(figures).items()}


def _figures(metrics: object) -> list[tuple[Kind[Any, Any], Any]]:
    """Pair every kind that a run's metrics hold with its figures."""
    return [(kind, figures) for kind in KINDS if (figures := kind.of(metrics)) is not None]


def evidence_columns(kinds: Sequence[Kind[Any, Any]] = KINDS) -> "dict[str, pa.DataType]":
    """Map the columns of `predictions.parquet` that hold evidence to their types."""
    import pyarrow as pa

    columns = {}
    for name, arrow in (column for kind in kinds for column in kind.columns.items()):
        element = pa.type_for_alias(arrow.strip("[]"))
        columns[name] = pa.list_(element) if arrow.startswith("[") else element
    return columns


def evidence_cells(prediction: Prediction, item: object) -> dict[str, Any]:
    """Return what stands in these columns for one answer to an item."""
    fields = {name: getattr(prediction, name, None) for kind in KINDS for name in kind.columns}
    return fields | {name: cell for kind in KINDS for name, cell in kind.cells(prediction, item).items()}


def evidence_entry(prediction: Prediction) -> dict[str, Any]:
    """Return what the page shows of a prediction's evidence, JSON-ready; a value of None is left out."""
    return {name: value for kind in KINDS for name, value in kind.page(prediction).items()}
