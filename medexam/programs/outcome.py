"""From what a program returned, or how it broke, to the `Prediction` that is kept.

A fault is attributed here, once: a prompt that does not fit leaves its question unanswered, a transport or server
fault makes it failed, and anything else is no answer at all but an error of the run.
"""

from collections.abc import Sequence
from typing import Any

import dspy
from dspy.utils.exceptions import ContextWindowExceededError, LMError

from medexam.errors import ProgramFaultError
from medexam.model_calls import Ending, read_ending
from medexam.model_identity import Answerer
from medexam.predictions import Failure, Prediction, Reason, Reply, Status, as_read
from medexam.programs.base import AskingProgram
from medexam.programs.likelihood import OptionScores
from medexam.programs.retrieval.iterative import kept_passage
from medexam.programs.retrieval.reading import EntailmentScores
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.signatures import Generation, is_cut_in_thinking
from medexam.tasks import Task

_WRITTEN = (Reason.UNPARSED, Reason.TRUNCATED)
"""Why a reply holds no answer though it is all words."""
_WITHHELD = {Ending.REFUSED: Reason.REFUSED, Ending.FILTERED: Reason.FILTERED}


def build_prediction(
    question: Question | Task,
    said: dspy.Prediction,
    *,
    program: str,
    spec_digest: str,
    latency_s: float,
    waiting_s: float | None = None,
    answerer: Answerer | None = None,
) -> Prediction:
    """The prediction of a program that returned; `answerer` is the model asked, None where none was identified.

    `waiting_s` is the part of `latency_s` before anything was sent; None where nobody measured it.
    """
    generations: list[Generation] = said.generations
    last: Generation | None = said.get("told") or (generations[-1] if generations else None)
    scores: OptionScores | EntailmentScores | None = said.get("scores")
    fields = {
        **_read_fields(said, last, replied=last is not None and scores is None),
        **(vars(scores) if scores else {}),
        **_passages(said),
        **_usage(generations),
        "generations": tuple(map(_reply, generations)) if said.get("traced") else None,
    }
    if last is not None:
        fields |= {
            "reply": last.reply,
            "latency_s": round(latency_s, 4),
            "waiting_s": None if waiting_s is None else round(waiting_s, 4),
            "model": last.model,
            "answered_by": answerer and answerer.print_of(last.model, cut=bool(said.get("passages_cut"))),
            "finish_reason": last.finish_reason,
        }
    # A field that is None is not given: to check that it may be takes longer than to leave it out.
    given = {name: value for name, value in fields.items() if value is not None}
    return Prediction(question=question.key, program=program, spec_digest=spec_digest, **given)


def read_again(program: AskingProgram, question: Question | Task, stored: Prediction) -> Prediction | None:
    """A stored prediction with its reply read as the program reads replies today; nothing is asked.

    If there is no reply to be read, for the asking failed or the prompt did not fit, it is as it was. None where it
    keeps too little to be read.
    """
    if stored.status is Status.FAILED or stored.reason in (Reason.CONTEXT_OVERFLOW, Reason.REFUSED, Reason.FILTERED):
        return stored
    said = program.read_again(question, stored)
    if said is None:
        return None
    fields = _read_fields(said, stored, replied=stored.option_scores is None)
    return read_both(program, question, stored.model_copy(update={**fields, "lenient": None}))


def read_both(program: AskingProgram, question: Question | Task, prediction: Prediction) -> Prediction:
    """Return a prediction that was read strictly with what only the lenient reader reads in its reply.

    That is its answer too if the program reads leniently.
    """
    if prediction.reason not in _WRITTEN:
        return prediction
    said = program.read_again(question, prediction, "lenient")
    if said is None or said.answer is None:
        return prediction
    return as_read(prediction.model_copy(update={"lenient": said.answer}), program.reading)


def build_failure(
    question: Question | Task,
    error: LMError | ProgramFaultError,
    *,
    program: str,
    spec_digest: str,
    answerer: Answerer | None = None,
) -> Prediction:
    """The prediction of a program whose model call broke, or whose own code raised."""
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
        failure=Failure(
            kind=error.kind if isinstance(error, ProgramFaultError) else type(error).__name__, message=str(error)
        ),
    )


def _read_fields(said: dspy.Prediction, last: Generation | Prediction | None, *, replied: bool) -> dict[str, Any]:
    """The fields of a prediction that depend on how what was said is read; `replied`: in words, not in scores.

    `last` holds the last reply; None if nothing was said.
    """
    text: str | None = said.get("text")
    status, reason = Status.UNANSWERED, None
    if said.answer is not None or text is not None:
        status = Status.ANSWERED
    elif not replied:
        reason = Reason.ABSTAINED
    else:
        reason = (last and _unreadable(last)) or said.get("reason", Reason.UNPARSED)
    return {
        "status": status,
        "reason": reason,
        "answer": said.answer,
        "text": text,
        "span": said.get("span"),
        "alignment": said.get("alignment"),
        "rationale": said.rationale,
        "votes": said.get("votes"),
        "orders": said.get("orders"),
    }


def _unreadable(last: Generation | Prediction) -> Reason | None:
    """Return why the last reply holds no answer, where it is no whole one; None where it is."""
    ending = last.ending if isinstance(last, Generation) else read_ending(last.finish_reason)
    if ending is Ending.CUT:
        thinks = is_cut_in_thinking(last.reply, last.finish_reason)
        return Reason.TRUNCATED_THINKING if thinks else Reason.TRUNCATED
    if ending in _WITHHELD:
        return _WITHHELD[ending]
    return None if (last.reply or "").strip() else Reason.EMPTY


def _passages(said: dspy.Prediction) -> dict[str, Any]:
    hits: list[Hit] | None = said.get("hits")
    if hits is None:
        return {}
    found = tuple(map(kept_passage, hits))
    if (verdicts := said.get("verdicts")) is not None:
        found = tuple(one.model_copy(update=vars(verdict)) for one, verdict in zip(found, verdicts, strict=True))
    own = {name: said.get(name) for name in ("passages_cut", "rounds", "supported", "cited", "cited_support")}
    return {"passages": found, **own}


def _reply(generation: Generation) -> Reply:
    return Reply(
        text=generation.reply or "",
        finish_reason=generation.finish_reason,
        prompt_tokens=generation.prompt_tokens,
        completion_tokens=generation.completion_tokens,
        thinking_tokens=generation.thinking_tokens,
        seed=generation.seed,
    )


def _usage(generations: Sequence[Generation]) -> dict[str, int | None]:
    """The tokens of all replies together; None for prompts or completions if those of one of them are unknown."""
    thinking = [one.thinking_tokens for one in generations if one.thinking_tokens is not None]
    return {
        "prompt_tokens": _total([one.prompt_tokens for one in generations]),
        "completion_tokens": _total([one.completion_tokens for one in generations]),
        "thinking_tokens": sum(thinking) if thinking else None,
    }


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
