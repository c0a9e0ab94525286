"""Poses CasiMedicos-Arg's documents as extractive questions: where in the text does the physician argue for the answer?

Four variants differ in what the question and the context hold. The answer itself is not in these files, and nothing
here invents one.
"""

from dataclasses import dataclass
from typing import Literal

from medexam.datasets.casimedicos.documents import CUT_ANOMALIES, CaseDocument


@dataclass(frozen=True, slots=True)
class ExplanationVariant:
    """One way to pose the question whose answer is the part of the explanation that argues for the right option."""

    name: Literal["CQ#E", "CQP#E", "Q#CE", "QP#CE"]
    """What the question holds, `#`, and what the context holds: Case, Question, Possible answers, Explanation."""
    question: str
    context: str
    suspicious: bool
    """Whether the cut between case and question is doubtful and matters: never where both stand on the same side."""


def explanation_variants(document: CaseDocument) -> tuple[ExplanationVariant, ...]:
    """CQ#E, CQP#E, Q#CE and QP#CE of `document`, in this order; parts are joined by a space, options by " @@ ".

    Goenaga et al. (2023), "Explanatory argument extraction of correct answers in resident medical exams".
    """
    case, question, explanation = document.case, document.question, document.explanation
    options = " @@ ".join(document.options)
    doubtful = not CUT_ANOMALIES.isdisjoint(document.anomalies)
    return (
        ExplanationVariant("CQ#E", _join(case, question), explanation, False),
        ExplanationVariant("CQP#E", _join(case, question, options), explanation, False),
        ExplanationVariant("Q#CE", question, _join(case, explanation), doubtful),
        ExplanationVariant("QP#CE", _join(question, options), _join(case, explanation), doubtful),
    )


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)
