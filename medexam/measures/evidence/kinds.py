"""Every kind of evidence, and what files, reports and the page say of all of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from medexam.measures.evidence import citations, option_scores, orders, passages, rounds, verdicts, votes
from medexam.measures.evidence.figures import Figures, Rows
from medexam.predictions.core import RetrievedPassage, Status
from medexam.predictions.prediction import Prediction
from medexam.questions import AnswerKey, Question
from medexam.tables import Table, six_digits

if TYPE_CHECKING:
    import pyarrow as pa


class Kind(Protocol):
    """What the module of a kind of evidence does."""

    def measure(self, rows: Rows) -> Figures | None:
        """Make its figures, JSON-ready; None where no prediction holds the evidence."""

    def tables(self, figures: Figures) -> list[Table]:
        """Show them, with captions."""


KINDS: dict[str, Kind] = {
    "votes": votes,
    "orders": orders,
    "option_scores": option_scores,
    "retrieval": passages,
    "verified": verdicts,
    "queries": rounds,
    "citations": citations,
}
"""The key of its figures in `metrics.json` -> the kind, in the order of a report's tables."""
_FIELDS = ("option_scores", "passages", "votes", "orders", "rounds", "cited", "supported")
"""The fields of a prediction of which one at least is set where it holds evidence."""
_COLUMNS = {
    "option_scores": "[double]",
    **dict.fromkeys(("score_unit", "score_norm"), "string"),
    "label_mass": "double",
    "tied": "int32",
    **dict.fromkeys(("read_by", "read_why"), "string"),
    "passages": "[string]",
    "passage_scores": "[double]",
    "passages_cut": "int64",
    **dict.fromkeys(("failure_kind", "failure_message"), "string"),
}
"""The columns of `predictions.parquet` that hold evidence, with Arrow's types; in brackets: a list of them."""


def measure_evidence(
    questions: Sequence[Question],
    key: AnswerKey,
    predictions: Mapping[str, Prediction],
    cancelling: float | None = None,
) -> dict[str, Figures]:
    """Map each kind that the predictions hold to its figures; those of failed predictions enter none.

    `cancelling`: how many wrong answers cancel a right one, where a data set declares it. Raises `DatasetError` if
    `key` lacks one of the questions.
    """
    keys = [question.key for question in questions if question.key in predictions]
    # Most programs leave none, and all predictions of a large run at once would not fit the memory.
    if all(getattr(one, name) is None for one in map(predictions.__getitem__, keys) for name in _FIELDS):
        return {}
    selection = map(predictions.__getitem__, keys)
    rows = [(one, key[one.question]) for one in selection if one.status is not Status.FAILED]
    measures = {name: kind.measure for name, kind in KINDS.items()}
    measures["option_scores"] = partial(option_scores.measure, cancelling=cancelling)
    return {name: figures for name, measure in measures.items() if (figures := measure(rows)) is not None}


def evidence_tables(evidence: Mapping[str, Figures]) -> list[Table]:
    """Show the tables of every kind that a run's metrics hold."""
    return [table for name, kind in KINDS.items() if name in evidence for table in kind.tables(evidence[name])]


def evidence_values(figures: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Map `kind.figure` to the value of each number that MLflow keeps: all but lists; intervals as their ends."""
    values: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            values |= evidence_values(value, f"{prefix}{name}.")
        elif name.endswith("interval") and value:
            ends = zip(("low", "high"), value, strict=True)
            values |= {f"{prefix}{name.removesuffix('interval')}{end}": number for end, number in ends}
        elif isinstance(value, int | float) and not isinstance(value, bool):
            values[prefix + name] = value
    return values


def evidence_columns() -> "dict[str, pa.DataType]":
    """Map the columns of `predictions.parquet` that hold evidence to their types."""
    import pyarrow as pa

    elements = {name: pa.type_for_alias(arrow.strip("[]")) for name, arrow in _COLUMNS.items()}
    return {name: pa.list_(each) if _COLUMNS[name].startswith("[") else each for name, each in elements.items()}


def evidence_cells(prediction: Prediction, item: object) -> dict[str, Any]:
    """Return what stands in these columns for one answer to an item."""
    passages, failure = prediction.passages, prediction.failure
    return {name: getattr(prediction, name, None) for name in _COLUMNS} | {
        "option_scores": prediction.scores_of(getattr(item, "option_numbers", ())),
        "passages": None if passages is None else [passage.id for passage in passages],
        "passage_scores": None if passages is None else [passage.score for passage in passages],
        "failure_kind": failure and failure.kind,
        "failure_message": failure and failure.message,
    }


def evidence_entry(prediction: Prediction) -> dict[str, Any]:
    """Return what the page shows of a prediction's evidence, JSON-ready; a value of None is left out."""
    passages, failure, scores = prediction.passages, prediction.failure, prediction.option_scores
    entry: dict[str, Any] = {
        "scores": scores and [[number, six_digits(score)] for number, score in scores.items()],
        "score_unit": prediction.score_unit,
        "score_norm": prediction.score_norm,
        "passages": None if passages is None else [_shown(passage) for passage in passages],
        "passages_cut": prediction.passages_cut or None,
        "supported": prediction.supported,
        "cited": prediction.cited,
        "failure": failure and f"{failure.kind}: {failure.message}",
    }
    if prediction.rounds is not None:
        entry["rounds"] = [
            [[step.query, step.answer, [passage.id for passage in step.passages]] for step in steps]
            for steps in prediction.rounds
        ]
    return entry


def _shown(passage: RetrievedPassage) -> list[Any]:
    """List what the page shows of a passage."""
    verdict = [] if passage.kept is None else [passage.kept]
    return [passage.id, passage.source, six_digits(passage.score), *verdict]
