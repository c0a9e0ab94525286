"""Every kind of evidence, and what files, reports and the page say of all of them."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from medexam.measures.evidence import citations, option_scores, orders, passages, rounds, verdicts, votes
from medexam.measures.evidence.figures import Figures
from medexam.predictions.prediction import Prediction, Status
from medexam.questions import AnswerKey, Question
from medexam.tables import Table, six_digits

KINDS: dict[str, ModuleType] = {
    "votes": votes,
    "orders": orders,
    "option_scores": option_scores,
    "retrieval": passages,
    "verified": verdicts,
    "queries": rounds,
    "citations": citations,
}
"""The key of its figures in `metrics.json` -> what measures and shows them, in the order of a report's tables."""
_FIELDS = ("option_scores", "passages", "votes", "orders", "rounds", "cited", "supported")
"""The fields of a prediction of which one at least is set where it holds evidence."""
EVIDENCE_COLUMNS = {
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


def holds_evidence(prediction: Prediction) -> bool:
    """Return whether there is something to measure; most programs leave none."""
    return any(getattr(prediction, name) is not None for name in _FIELDS)


def measure_evidence(
    questions: Sequence[Question],
    key: AnswerKey,
    predictions: Mapping[str, Prediction],
) -> dict[str, Figures]:
    """Map each kind that the predictions hold to its figures; those of failed predictions enter none.

    Raises `DatasetError` if `key` lacks one of the questions.
    """
    selection = (predictions[question.key] for question in questions if question.key in predictions)
    rows = [(one, key[one.question]) for one in selection if one.status is not Status.FAILED]
    figures = {name: kind.measure(rows) for name, kind in KINDS.items()}
    return {name: each for name, each in figures.items() if each is not None}


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


def evidence_cells(prediction: Prediction, item: object) -> dict[str, Any]:
    """Return what stands in `EVIDENCE_COLUMNS` for one answer to an item."""
    passages, failure = prediction.passages, prediction.failure
    return {name: getattr(prediction, name, None) for name in EVIDENCE_COLUMNS} | {
        "option_scores": prediction.scores_of(getattr(item, "option_numbers", ())),
        "passages": None if passages is None else [passage.id for passage in passages],
        "passage_scores": None if passages is None else [passage.score for passage in passages],
        "failure_kind": failure and failure.kind,
        "failure_message": failure and failure.message,
    }


def evidence_entry(prediction: Prediction) -> dict[str, Any]:
    """Return what the page shows of a prediction's evidence, JSON-ready; a value of None is left out."""
    failure, scores = prediction.failure, prediction.option_scores
    # A passage is its id, source and score, and whether a verifier kept it.
    passage_rows = [
        [each.id, each.source, six_digits(each.score), *(() if each.kept is None else (each.kept,))]
        for each in prediction.passages or ()
    ]
    entry: dict[str, Any] = {
        "scores": scores and [[number, six_digits(score)] for number, score in scores.items()],
        **{name: getattr(prediction, name) for name in ("score_unit", "score_norm", "supported", "cited")},
        "passages": None if prediction.passages is None else passage_rows,
        "passages_cut": prediction.passages_cut or None,
        "failure": failure and f"{failure.kind}: {failure.message}",
    }
    if prediction.rounds is not None:
        entry["rounds"] = [
            [[step.query, step.answer, [passage.id for passage in step.passages]] for step in steps]
            for steps in prediction.rounds
        ]
    return entry
