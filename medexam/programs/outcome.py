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
from medexam.signatures.thinking import is_cut_in_thinking

_WRITTEN = (Reason.UNPARSED, Reason.TRUNCATED)
"""Why a reply holds no answer though it is all words."""
_WITHHELD = {Ending.REFUSED: Reason.REFUSED, Ending.FILTERED: Reason.FILTERED}
_KEPT = ("answer", "text", "span", "alignment", "rationale", "votes", "orders", "outputs", "metric_score")
_OF_PASSAGES = ("passages_cut", "rounds", "supported", "cited")


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
    fields: dict[str, Any] = {}
    last = next((place for place in reversed(range(len(calls))) if calls[place].has_reply), None)
    if generation is None:
        generation = None if last is None else calls[last].generation()
    elif generation.place is None:
        # Nothing was sent for it: a reader of this machine wrote it.
        calls = (*calls, ModelCall().with_reply(generation))
    elif generation.place != last:
        fields["replied"] = generation.place
    if generation is not None:
        fields |= {"latency_s": round(latency_s, 4)}
        if answerer is not None:
            # Another print where a reply names another model than was admitted for it.
            names = {call.asked: call.model for call in calls if call.has_reply}
            swapped = (names[key] for key, other in further.items() if names.get(key, other.name) != other.name)
            name = next(swapped, None) or names.get(None)
            fields["answered_by"] = answerer.print_of(name)
    fields |= {name: outcome.get(name) for name in _KEPT}
    if outcome.scores is not None:
        option_scores = [*outcome.scores["option_scores"].values()]
        fields |= {**outcome.scores, "tied": option_scores.count(max(option_scores))}
    if outcome.hits is not None:
        passages = [*map(kept_passage, outcome.hits)]
        if outcome.verdicts is not None:
            pairs = zip(passages, outcome.verdicts, strict=True)
            passages = [passage.model_copy(update={"kept": is_kept}) for passage, is_kept in pairs]
        fields |= {"passages": tuple(passages), **{name: outcome.get(name) for name in _OF_PASSAGES}}
    if outcome.answer is not None or outcome.text is not None:
        fields["status"] = Status.ANSWERED
    else:
        fields |= {"status": Status.UNANSWERED, "reason": _unanswered(outcome, generation)}
    # A field that is None is not given: to check that it may be takes longer than to leave it out.
    values = {name: value for name, value in fields.items() if value is not None}
    return Prediction(question=question.key, program=program, spec_digest=spec_digest, calls=tuple(calls), **values)


def _unanswered(outcome: ProgramOutput, generation: Generation | None) -> Reason:
    """Return why there is no answer; `generation` is the reply that it would stand in, None if nothing was said."""
    if outcome.reason is Reason.FAULTED:
        return outcome.reason
    if generation is None or outcome.scores is not None:
        return Reason.ABSTAINED
    if generation.ending is Ending.CUT:
        thinks = is_cut_in_thinking(generation.reply, generation.finish_reason)
        return Reason.TRUNCATED_THINKING if thinks else Reason.TRUNCATED
    if generation.ending in _WITHHELD:
        return _WITHHELD[generation.ending]
    if not (generation.tool_calls or generation.words.strip()):
        return Reason.EMPTY
    return outcome.reason or Reason.UNPARSED


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
    fields: dict[str, Any] = {"status": Status.UNANSWERED, "reason": Reason.CONTEXT_OVERFLOW}
    if not isinstance(error, ContextWindowExceededError):
        is_own = isinstance(error, ProgramFaultError)
        kind, text = (error.kind, error.traceback) if is_own else (type(error).__name__, None)
        fields = {"status": Status.FAILED, "failure": Failure(kind=kind, message=str(error), traceback=text)}
    elif answerer is not None:
        fields["answered_by"] = answerer.print_of(None)
    return Prediction(question=question.key, program=program, spec_digest=spec_digest, calls=tuple(calls), **fields)
