"""From what a program returned, or how it broke, to the `Prediction` that is kept.

A fault is attributed here, once: a prompt that does not fit leaves its question unanswered, a transport or server
fault makes it failed, and anything else is no answer at all but an error of the run.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import dspy
from dspy.utils.exceptions import ContextWindowExceededError, LMError

from medexam.errors import ProgramFaultError
from medexam.model_calls import Ending, Generation
from medexam.model_identity import Answerer
from medexam.predictions import Failure, Prediction, Reason, Status
from medexam.predictions.calls import ModelCall
from medexam.predictions.prediction import as_read
from medexam.programs.base import AskingProgram
from medexam.programs.program_output import ProgramOutput, kept_passage
from medexam.programs.stored_calls import look
from medexam.questions import Question, Task
from medexam.signatures import is_cut_in_thinking

_WRITTEN = (Reason.UNPARSED, Reason.TRUNCATED)
"""Why a reply holds no answer though it is all words."""
_WITHHELD = {Ending.REFUSED: Reason.REFUSED, Ending.FILTERED: Reason.FILTERED}


def build_prediction(
    question: Question | Task,
    prediction: dspy.Prediction,
    calls: Sequence[ModelCall] = (),
    *,
    program: str,
    spec_digest: str,
    latency_s: float,
    answerer: Answerer | None = None,
    further: Mapping[str, Answerer] = MappingProxyType({}),
) -> Prediction:
    """Build the prediction of a program that returned, with the calls that it made.

    `answerer` is the model asked, None where none was identified; `further` are the experiment's further models that
    are asked too, by name.
    """
    outcome = ProgramOutput.of(prediction)
    generation = outcome.generation
    place = next((place for place in reversed(range(len(calls))) if calls[place].has_reply), None)
    last_place = place
    if generation is not None and generation.place is None:
        # Nothing was sent for it: a reader of this machine wrote it.
        calls, place = (*calls, ModelCall().with_reply(generation)), None
    elif generation is not None:
        place = generation.place
    elif place is not None:
        generation = calls[place].generation()
    scores = outcome.scores
    fields = {
        **_read_fields(outcome, generation, replied=generation is not None and scores is None),
        **(vars(scores) if scores else {}),
        **_passages(outcome),
        "calls": tuple(calls),
        "replied": None if place == last_place else place,
    }
    if generation is not None:
        fields |= {
            "latency_s": round(latency_s, 4),
            "answered_by": answerer and _print(answerer, further, calls, cut=bool(outcome.passages_cut)),
        }
    # A field that is None is not given: to check that it may be takes longer than to leave it out.
    present_fields = {name: value for name, value in fields.items() if value is not None}
    return Prediction(question=question.key, program=program, spec_digest=spec_digest, **present_fields)


def _print(answerer: Answerer, further: Mapping[str, Answerer], calls: Sequence[ModelCall], *, cut: bool) -> str:
    """Return the print of the run's model; another one where a reply names another model than was admitted for it."""
    names = {call.asked: call.model for call in calls if call.has_reply}
    swapped = next((names[key] for key, other in further.items() if names.get(key, other.name) != other.name), None)
    return answerer.print_of(swapped or names.get(None), cut=cut)


async def read_both(program: AskingProgram, question: Question | Task, prediction: Prediction) -> Prediction:
    """Return a prediction that was read strictly with what only the lenient reader reads in its replies.

    That is its answer too if the program reads leniently.
    """
    if prediction.reason not in _WRITTEN or not program.reads_options:
        return prediction
    output = (await look(program, question, prediction.calls, "lenient")).output
    if output is None or output.answer is None:
        return prediction
    return as_read(prediction.model_copy(update={"lenient": output.answer}), program.reading)


def build_failure(
    question: Question | Task,
    error: LMError | ProgramFaultError,
    calls: Sequence[ModelCall] = (),
    *,
    program: str,
    spec_digest: str,
    answerer: Answerer | None = None,
) -> Prediction:
    """Build the prediction of a program whose model call broke, or whose own code raised, with the calls until then."""
    fields: dict[str, Any] = {
        "question": question.key,
        "program": program,
        "spec_digest": spec_digest,
        "calls": tuple(calls),
    }
    if isinstance(error, ContextWindowExceededError):
        fields["answered_by"] = answerer.print_of(None, cut=True) if answerer else None
        return Prediction(**fields, status=Status.UNANSWERED, reason=Reason.CONTEXT_OVERFLOW)
    is_own = isinstance(error, ProgramFaultError)
    kind, text = (error.kind, error.traceback) if is_own else (type(error).__name__, None)
    return Prediction(**fields, status=Status.FAILED, failure=Failure(kind=kind, message=str(error), traceback=text))


def _read_fields(outcome: ProgramOutput, generation: Generation | None, *, replied: bool) -> dict[str, Any]:
    """Return the fields of a prediction that depend on how what was said is read; `replied`: in words, not in scores.

    `generation` is the reply that the answer would stand in; None if nothing was said.
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
        reason = (generation and _unreadable(generation)) or outcome.reason or Reason.UNPARSED
    fields = dict(outcome.items())
    names = ("answer", "text", "span", "alignment", "rationale", "votes", "orders", "outputs", "metric_score")
    return {"status": status, "reason": reason, **{name: fields.get(name) for name in names}}


def _unreadable(generation: Generation) -> Reason | None:
    """Return why a reply holds no answer, where it is no whole one; None where it is."""
    if generation.ending is Ending.CUT:
        thinks = is_cut_in_thinking(generation.reply, generation.finish_reason)
        return Reason.TRUNCATED_THINKING if thinks else Reason.TRUNCATED
    if generation.ending in _WITHHELD:
        return _WITHHELD[generation.ending]
    return None if generation.tool_calls or generation.words.strip() else Reason.EMPTY


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
