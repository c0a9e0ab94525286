"""From what a program returned, or how it broke, to the `Prediction` that is kept.

A fault is attributed here, once: a prompt that does not fit leaves its question unanswered, a transport or server
fault makes it failed, and anything else is no answer at all but an error of the run.
"""

from typing import Any

import dspy
from dspy.utils.exceptions import ContextWindowExceededError, LMError

from medexam.model_identity import Answerer
from medexam.predictions import Failure, Prediction, Reason, RetrievedPassage, Status, Usage
from medexam.programs.likelihood import OptionScores
from medexam.programs.reading import EntailmentScores
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.signatures import Generation
from medexam.tasks import Task


def build_prediction(
    question: Question | Task,
    said: dspy.Prediction,
    *,
    program: str,
    spec_digest: str,
    latency_s: float,
    answerer: Answerer | None = None,
) -> Prediction:
    """The prediction of a program that returned; `answerer` is the model asked, None where none was identified."""
    generations: list[Generation] = said.generations
    last = generations[-1] if generations else None
    scores: OptionScores | EntailmentScores | None = said.get("scores")
    text: str | None = said.get("text")
    if said.answer is not None or text is not None:
        status, reason = Status.ANSWERED, None
    elif last is None or scores is not None:
        status, reason = Status.UNANSWERED, Reason.ABSTAINED
    else:
        status = Status.UNANSWERED
        unread = said.get("reason", Reason.UNPARSED)
        reason = Reason.TRUNCATED if last.finish_reason == "length" else unread
    usage = _usage(generations)
    return Prediction(
        question=question.key,
        program=program,
        spec_digest=spec_digest,
        status=status,
        reason=reason,
        answer=said.answer,
        text=text,
        span=said.get("span"),
        alignment=said.get("alignment"),
        reply=last.reply if last else None,
        rationale=said.rationale,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        latency_s=round(latency_s, 4) if last else None,
        model=last.model if last else None,
        answered_by=answerer.print_of(last.model, cut=bool(said.get("passages_cut"))) if answerer and last else None,
        finish_reason=last.finish_reason if last else None,
        **(vars(scores) if scores else {}),
        **_passages(said),
    )


def build_failure(
    question: Question | Task, error: LMError, *, program: str, spec_digest: str, answerer: Answerer | None = None
) -> Prediction:
    """The prediction of a program whose model call broke."""
    if isinstance(error, ContextWindowExceededError):
        return Prediction(
            question=question.key,
            program=program,
            spec_digest=spec_digest,
            status=Status.UNANSWERED,
            reason=Reason.CONTEXT_OVERFLOW,
            answered_by=answerer.print_of(None, cut=True) if answerer else None,
        )
    return Prediction(
        question=question.key,
        program=program,
        spec_digest=spec_digest,
        status=Status.FAILED,
        failure=Failure(kind=type(error).__name__, message=str(error)),
    )


def _passages(said: dspy.Prediction) -> dict[str, Any]:
    hits: list[Hit] | None = said.get("hits")
    if hits is None:
        return {}
    found = tuple(RetrievedPassage(id=hit.passage.id, source=hit.passage.source, score=hit.score) for hit in hits)
    return {"passages": found, "passages_cut": said.get("passages_cut")}


def _usage(generations: list[Generation]) -> Usage:
    if not generations:
        return Usage()
    total = Usage(prompt_tokens=0, completion_tokens=0)
    for generation in generations:
        total += Usage(prompt_tokens=generation.prompt_tokens, completion_tokens=generation.completion_tokens)
    return total
