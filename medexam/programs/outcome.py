"""From what a program returned, or how it broke, to the `Prediction` that is kept.

A fault is attributed here, once: a prompt that does not fit leaves its question unanswered, a transport or server
fault makes it failed, and anything else is no answer at all but an error of the run. A program may also be looked at:
its calls are answered by replies that are stored, or by none, and nothing is asked.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import dspy
from dspy.utils.exceptions import ContextWindowExceededError, LMError

from medexam.errors import ProgramFaultError
from medexam.model_calls import Dialogue, Ending, Generation, Reading
from medexam.model_identity import Answerer
from medexam.predictions import Failure, ModelCall, Prediction, Reason, Status
from medexam.predictions.prediction import as_read
from medexam.programs.base import NO_SCORES, OTHER_MODELS, READING, AskingProgram, EngineLM, kept_calls
from medexam.questions import Question, Task
from medexam.signatures.thinking import is_cut_in_thinking

_WITHHELD = {Ending.REFUSED: Reason.REFUSED, Ending.FILTERED: Reason.FILTERED}
_OF_PASSAGES = {"passages", "passages_cut", "rounds", "supported", "cited"}
_KEPT = {
    *("answer", "text", "span", "alignment", "rationale", "votes", "orders", "outputs", "metric_score"),
    *NO_SCORES,
}


def build_prediction(
    question: Question | Task,
    prediction: dspy.Prediction,
    calls: Sequence[ModelCall] = (),
    *,
    latency_s: float,
    answerers: Mapping[str | None, Answerer] = MappingProxyType({}),
    **owner: Any,
) -> Prediction:
    """Build the prediction of a program that returned, with the calls that it made.

    `answerers` are the models that were identified: the one asked, as None, and further ones by name. `owner` says
    whose prediction it is: `program` and `spec_digest`.
    """
    names = _KEPT | _OF_PASSAGES if prediction.get("passages") is not None else _KEPT
    # A field that is None is not given: to check that it may be takes longer than to leave it out.
    fields: dict[str, Any] = {name: value for name, value in prediction.items() if value is not None and name in names}
    generation, scores = prediction.get("generation"), fields.get("option_scores")
    last, served = None, dict[str | None, str | None]()
    for place, call in enumerate(calls):
        if call.has_reply:
            last, served[call.asked] = place, call.model
    if generation is None:
        generation = None if last is None else calls[last]
    elif generation.place is None:
        # Nothing was sent for it: a reader of this machine wrote it.
        calls = (*calls, ModelCall.of(Dialogue([], "", {}), generation))
    elif generation.place != last:
        fields["replied"] = generation.place
    if generation is not None:
        fields["latency_s"] = round(latency_s, 4)
        if answerer := answerers.get(None):
            # Another print where a reply names another model than was admitted for it.
            swapped = (served[key] for key, one in answerers.items() if key and served.get(key, one.name) != one.name)
            name = next(swapped, served.get(None))
            fields["answered_by"] = answerer.print_of(name)
    if scores is not None:
        fields["tied"] = [*scores.values()].count(max(scores.values()))
    fields["status"] = Status.ANSWERED
    if "answer" not in fields and "text" not in fields:
        reason = _unanswered(prediction.get("reason"), generation, weighs=scores is not None)
        fields |= {"status": Status.UNANSWERED, "reason": reason}
    return Prediction(question=question.key, calls=tuple(calls), **owner, **fields)


def _unanswered(reason: Reason | None, generation: Generation | None, *, weighs: bool) -> Reason:
    """Return why there is no answer: the program's own reason, or what became of the reply that it would stand in, None
    if nothing was said; `weighs` a program that weighed the options.
    """
    if reason is Reason.FAULTED:
        return reason
    if generation is None or weighs:
        return Reason.ABSTAINED
    if generation.ending is Ending.CUT:
        is_thinking = is_cut_in_thinking(generation.text, generation.finish_reason)
        return Reason.TRUNCATED_THINKING if is_thinking else Reason.TRUNCATED
    if generation.ending in _WITHHELD:
        return _WITHHELD[generation.ending]
    if not (generation.tool_calls or generation.words.strip()):
        return Reason.EMPTY
    return reason or Reason.UNPARSED


def build_failure(
    question: Question | Task,
    error: LMError | ProgramFaultError,
    calls: Sequence[ModelCall] = (),
    *,
    answerers: Mapping[str | None, Answerer],
    **owner: Any,
) -> Prediction:
    """Build the prediction of a program whose model call broke, or whose own code raised, with the calls until then."""
    fields: dict[str, Any] = {"status": Status.UNANSWERED, "reason": Reason.CONTEXT_OVERFLOW}
    if not isinstance(error, ContextWindowExceededError):
        is_own = isinstance(error, ProgramFaultError)
        kind, text = (error.kind, error.traceback) if is_own else (type(error).__name__, None)
        fields = {"status": Status.FAILED, "failure": Failure(kind=kind, message=str(error), traceback=text)}
    elif answerer := answerers.get(None):
        fields["answered_by"] = answerer.print
    return Prediction(question=question.key, calls=tuple(calls), **owner, **fields)


async def read_both(program: dspy.Module, question: Question | Task, prediction: Prediction) -> Prediction:
    """Return a prediction that was read strictly with what only the lenient reader reads in its replies.

    That is its answer too if the program reads leniently.
    """
    # Both leave a reply without an answer though it is all words.
    is_words = prediction.reason in (Reason.UNPARSED, Reason.TRUNCATED)
    if not (is_words and isinstance(program, AskingProgram) and program.reads_options):
        return prediction
    output = (await look(program, question, prediction.calls, "lenient")).output
    if output is None or (answer := output.get("answer")) is None:
        return prediction
    return as_read(prediction.model_copy(update={"lenient": answer}), program.reading)


class _NoReplyError(BaseException):
    """A program asks for more than is stored; no `except Exception` of the user's code takes it for a model's fault."""


class _StoredReplies:
    """An engine that gives each dialogue its stored reply; it takes what the engine `like` takes."""

    def __init__(self, calls: Sequence[ModelCall], like: object = None) -> None:
        self._waiting = [call for call in calls if call.has_reply]
        # What DSPy's adapters look up, under DSPy's names.
        names = {name for call in calls for name in call.fields}
        for name, field in (("supports_function_calling", "tools"), ("supports_response_schema", "response_format")):
            setattr(self, name, getattr(like, name, False) or field in names)
        self.supported_params = frozenset(getattr(like, "supported_params", ()))

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the reply to these words, under this seed if several are stored."""
        record = ModelCall.of(dialogue)
        equal_calls = [call for call in self._waiting if call.words_sent == record.words_sent]
        same = [call for call in equal_calls if call.sampling.get("seed") == record.sampling.get("seed")]
        for call in (*same, *equal_calls):
            self._waiting.remove(call)
            return call
        raise _NoReplyError


class Look(NamedTuple):
    """What a program did with the replies that it was given."""

    calls: tuple[ModelCall, ...]
    """What it asked, in order; the last one has no reply where it asked for more than was stored."""
    output: dspy.Prediction | None
    """Its answer; None where it asked for more, or where its code or a call broke."""
    fault: ProgramFaultError | None
    """What the user's code raised; None where it raised nothing."""


async def look(
    program: dspy.Module, question: Any, calls: Sequence[ModelCall] = (), reading: Reading = "strict"
) -> Look:
    """Run a program on a question with the replies of stored calls, read in this way; without any, up to its first one.

    The settings of its calls are those of the language models of DSPy's context.
    """
    output, fault = None, None
    lm = dspy.settings.lm
    replies = _StoredReplies(calls, getattr(lm, "live_engine", None))
    others = {name: answered_by(replies, other) for name, other in (dspy.settings.get(OTHER_MODELS) or {}).items()}
    settings = {"lm": answered_by(replies, lm), READING: reading, **({OTHER_MODELS: others} if others else {})}
    with dspy.context(disable_history=True, **settings), kept_calls() as keeper:
        try:
            output = await program.acall(question=question)
        except ProgramFaultError as error:
            fault = error
        except (LMError, _NoReplyError):
            pass
    return Look(keeper.all(), output, fault)


def answered_by(engine: Any, lm: dspy.LM | None = None) -> EngineLM:
    """Return a language model that is answered by an engine; with the settings of `lm`, if there is one."""
    settings = {"temperature": None, "max_tokens": None} if lm is None else lm.kwargs
    return EngineLM(engine, "medexam/stored" if lm is None else lm.model, **settings)
