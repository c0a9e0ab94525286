"""From what a program returned, or how it broke, to the `Prediction` that is kept.

A fault is attributed here, once: a prompt that does not fit leaves its question unanswered, a transport or server
fault makes it failed, and anything else is no answer at all but an error of the run.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import dspy
from dspy.utils.exceptions import ContextWindowExceededError, LMError

from medexam.errors import ProgramFaultError
from medexam.model_calls import Ending, Generation, read_ending
from medexam.model_identity import Answerer
from medexam.predictions import Failure, Prediction, Reason, Status
from medexam.predictions.evidence.replies import Reply
from medexam.predictions.prediction import as_read
from medexam.programs.base import AskingProgram
from medexam.programs.program_output import ProgramOutput, kept_passage
from medexam.questions import Question, Task
from medexam.signatures import is_cut_in_thinking

_WRITTEN = (Reason.UNPARSED, Reason.TRUNCATED)
"""Why a reply holds no answer though it is all words."""
_WITHHELD = {Ending.REFUSED: Reason.REFUSED, Ending.FILTERED: Reason.FILTERED}


def build_prediction(
    question: Question | Task,
    prediction: dspy.Prediction,
    *,
    program: str,
    spec_digest: str,
    latency_s: float,
    waiting_s: float | None = None,
    answerer: Answerer | None = None,
    further: Mapping[str, Answerer] = MappingProxyType({}),
) -> Prediction:
    """Build the prediction of a program that returned; `answerer` is the model asked, None where none was identified.

    `further` are the experiment's further models that are asked too, by name.

    `waiting_s` is the part of `latency_s` before anything was sent; None where nobody measured it.
    """
    outcome = ProgramOutput.of(prediction)
    generations, scores = outcome.generations, outcome.scores
    last_reply = outcome.last_generation or (generations[-1] if generations else None)
    fields = {
        **_read_fields(outcome, last_reply, replied=last_reply is not None and scores is None),
        **(vars(scores) if scores else {}),
        **_passages(outcome),
        **_usage(generations),
        "generations": tuple(map(_reply, generations)) if outcome.keeps_replies else None,
    }
    if last_reply is not None:
        fields |= {
            "reply": last_reply.reply,
            "latency_s": round(latency_s, 4),
            "waiting_s": None if waiting_s is None else round(waiting_s, 4),
            "model": last_reply.model,
            "answered_by": answerer and _print(answerer, further, generations, cut=bool(outcome.passages_cut)),
            "finish_reason": last_reply.finish_reason,
        }
    # A field that is None is not given: to check that it may be takes longer than to leave it out.
    present_fields = {name: value for name, value in fields.items() if value is not None}
    return Prediction(question=question.key, program=program, spec_digest=spec_digest, **present_fields)


def _print(answerer: Answerer, further: Mapping[str, Answerer], generations: Sequence[Generation], *, cut: bool) -> str:
    """Return the print of the run's model; another one where a reply names another model than was admitted for it."""
    names = {generation.asked: generation.model for generation in generations}
    swapped = next((names[key] for key, other in further.items() if names.get(key, other.name) != other.name), None)
    return answerer.print_of(swapped or names.get(None), cut=cut)


def read_again(program: AskingProgram, question: Question | Task, stored: Prediction) -> Prediction | None:
    """Return a stored prediction with its reply read as the program reads replies today; nothing is asked.

    If there is no reply to be read, for the asking failed or the prompt did not fit, it is as it was. None where it
    keeps too little to be read.
    """
    if stored.status is Status.FAILED or stored.reason in (Reason.CONTEXT_OVERFLOW, Reason.REFUSED, Reason.FILTERED):
        return stored
    outcome = program.read_again(question, stored)
    if outcome is None:
        return None
    fields = _read_fields(ProgramOutput.of(outcome), stored, replied=stored.option_scores is None)
    return read_both(program, question, stored.model_copy(update={**fields, "lenient": None}))


def read_both(program: AskingProgram, question: Question | Task, prediction: Prediction) -> Prediction:
    """Return a prediction that was read strictly with what only the lenient reader reads in its reply.

    That is its answer too if the program reads leniently.
    """
    if prediction.reason not in _WRITTEN:
        return prediction
    outcome = program.read_again(question, prediction, "lenient")
    if outcome is None or outcome.answer is None:
        return prediction
    return as_read(prediction.model_copy(update={"lenient": outcome.answer}), program.reading)


def build_failure(
    question: Question | Task,
    error: LMError | ProgramFaultError,
    *,
    program: str,
    spec_digest: str,
    answerer: Answerer | None = None,
) -> Prediction:
    """Build the prediction of a program whose model call broke, or whose own code raised."""
    fields: dict[str, Any] = {"question": question.key, "program": program, "spec_digest": spec_digest}
    if isinstance(error, ContextWindowExceededError):
        fields["answered_by"] = answerer.print_of(None, cut=True) if answerer else None
        return Prediction(**fields, status=Status.UNANSWERED, reason=Reason.CONTEXT_OVERFLOW)
    is_own = isinstance(error, ProgramFaultError)
    kind, text = (error.kind, error.traceback) if is_own else (type(error).__name__, None)
    return Prediction(**fields, status=Status.FAILED, failure=Failure(kind=kind, message=str(error), traceback=text))


def _read_fields(
    outcome: ProgramOutput, last_reply: Generation | Prediction | None, *, replied: bool
) -> dict[str, Any]:
    """Return the fields of a prediction that depend on how what was said is read; `replied`: in words, not in scores.

    `last_reply` holds the last reply; None if nothing was said.
    """
    status = Status.UNANSWERED
    reason: Reason | None = None
    if outcome.answer is not None or outcome.text is not None:
        status = Status.ANSWERED
    elif outcome.reason is Reason.FAULTED:
        reason = outcome.reason
    elif not replied:
        reason = Reason.ABSTAINED
    else:
        reason = (last_reply and _unreadable(last_reply)) or outcome.reason or Reason.UNPARSED
    fields = dict(outcome.items())
    names = ("answer", "text", "span", "alignment", "rationale", "votes", "orders", "outputs", "metric_score")
    return {"status": status, "reason": reason, **{name: fields.get(name) for name in names}}


def _unreadable(last_reply: Generation | Prediction) -> Reason | None:
    """Return why the last reply holds no answer, where it is no whole one; None where it is."""
    ending = last_reply.ending if isinstance(last_reply, Generation) else read_ending(last_reply.finish_reason)
    if ending is Ending.CUT:
        thinks = is_cut_in_thinking(last_reply.reply, last_reply.finish_reason)
        return Reason.TRUNCATED_THINKING if thinks else Reason.TRUNCATED
    if ending in _WITHHELD:
        return _WITHHELD[ending]
    calls_tools = isinstance(last_reply, Generation) and bool(last_reply.tool_calls)
    return None if calls_tools or (last_reply.reply or "").strip() else Reason.EMPTY


def _passages(outcome: ProgramOutput) -> dict[str, Any]:
    if outcome.hits is None:
        return {}
    passages = tuple(map(kept_passage, outcome.hits))
    if outcome.verdicts is not None:
        passages = tuple(
            passage.model_copy(update=vars(verdict))
            for passage, verdict in zip(passages, outcome.verdicts, strict=True)
        )
    fields = {
        name: getattr(outcome, name) for name in ("passages_cut", "rounds", "supported", "cited", "cited_support")
    }
    return {"passages": passages, **fields}


def _reply(generation: Generation) -> Reply:
    return Reply(
        text=generation.reply or "",
        finish_reason=generation.finish_reason,
        prompt_tokens=generation.prompt_tokens,
        completion_tokens=generation.completion_tokens,
        thinking_tokens=generation.thinking_tokens,
        seed=generation.seed,
        asked=generation.asked,
        tool_calls=generation.tool_calls,
    )


def _usage(generations: Sequence[Generation]) -> dict[str, int | None]:
    """Count the tokens of all replies together; None for prompts or completions if those of one of them are unknown."""
    thinking = list(map(attrgetter("thinking_tokens"), generations))
    return {
        "prompt_tokens": _total(generations, "prompt_tokens"),
        "completion_tokens": _total(generations, "completion_tokens"),
        "thinking_tokens": None if thinking.count(None) == len(thinking) else sum(filter(None, thinking)),
    }


def _total(generations: Sequence[Generation], name: str) -> int | None:
    counts = list(map(attrgetter(name), generations))
    return None if not counts or None in counts else sum(counts)
