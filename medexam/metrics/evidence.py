"""What a run says of its evidence: passages that a verifier judged, queries that a model wrote, citations.

Pure functions over stored predictions; verdicts and supports were given when the question was asked.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from medexam.items import AnswerKey
from medexam.metrics.intervals import rate_interval
from medexam.metrics.results import (
    Checked,
    CitationMetrics,
    EvidenceMetrics,
    QueryMetrics,
    VerifiedMetrics,
)
from medexam.predictions import Prediction, Status
from medexam.questions import Question

ENTAILED = 0.5
"""The probability from which a passage entails an answer."""
_Outcomes = Sequence[tuple[Prediction, bool]]
"""Predictions, each with whether it is right."""


def evidence_metrics(
    questions: Sequence[Question], key: AnswerKey, predictions: Mapping[str, Prediction]
) -> EvidenceMetrics | None:
    """The metrics of those of `questions` that are scored; None if none was verified, searched for or cited.

    Raises `DatasetError` if `key` lacks one of them.
    """
    asked = [(question, predictions[question.key]) for question in questions if question.key in predictions]
    scored = [
        (said, key[question.key].accepts(said.answer)) for question, said in asked if said.status is not Status.FAILED
    ]
    found = EvidenceMetrics(verified=_verified(scored), queries=_queries(scored), citations=_citations(scored))
    return None if found == EvidenceMetrics() else found


def _verified(scored: _Outcomes) -> VerifiedMetrics | None:
    judged = [(said, right) for said, right in scored if said.supported is not None or _verdicts(said)]
    if not judged:
        return None
    verdicts = [_verdicts(said) for said, _ in judged]
    return VerifiedMetrics(
        n=len(judged),
        passages=sum(map(len, verdicts)),
        kept=sum(map(sum, verdicts)),
        none_kept=sum(not any(each) for each in verdicts),
        supported=_checked([one for one in judged if one[0].supported is True]),
        unsupported=_checked([one for one in judged if one[0].supported is False]),
    )


def _verdicts(said: Prediction) -> list[bool]:
    return [passage.kept for passage in said.passages or () if passage.kept is not None]


def _checked(group: _Outcomes) -> Checked:
    standing = [right for said, right in group if said.answer is not None]
    return Checked(
        n=len(group),
        withdrawn=len(group) - len(standing),
        accuracy=sum(standing) / len(standing) if standing else None,
        accuracy_interval=rate_interval(sum(standing), len(standing)),
    )


def _queries(scored: _Outcomes) -> QueryMetrics | None:
    searched = [(said, said.rounds) for said, _ in scored if said.rounds is not None]
    if not searched:
        return None
    return QueryMetrics(
        n=len(searched),
        rounds=fmean(len(rounds) for _, rounds in searched),
        queries=fmean(sum(map(len, rounds)) for _, rounds in searched),
        passages=fmean(len(said.passages or ()) for said, _ in searched),
        none=sum(not rounds for _, rounds in searched),
    )


def _citations(scored: _Outcomes) -> CitationMetrics | None:
    if all(said.cited is None for said, _ in scored):
        return None
    answered = [said for said, _ in scored if said.answer is not None]
    supports = [said.cited_support for said in answered if said.cited_support is not None]
    entailing = sum(support >= ENTAILED for support in supports)
    return CitationMetrics(
        n=len(answered),
        named=sum(bool(said.cited) for said in answered),
        refused=sum(said.cited == 0 for said in answered),
        scored=len(supports),
        entailing=entailing,
        entailing_interval=rate_interval(entailing, len(supports)),
        mean_support=fmean(supports) if supports else None,
    )
