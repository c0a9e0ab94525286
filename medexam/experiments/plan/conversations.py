"""What was sent and received for a stored prediction: the chat messages of each call, rendered again, and its reply.

Nothing is asked: prompts come from the program, replies from `predictions.jsonl`. It knows a planned cell, whose texts
and words are those that were asked, and nothing of where a conversation is shown.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from medexam.predictions import Prediction, Reason, Status
from medexam.programs import AskingProgram
from medexam.programs.base import Call, ExamProgram
from medexam.programs.combining.voting import Voting
from medexam.programs.replay import replay

Turns = list[dict[str, str]]


class Exchange(NamedTuple):
    """One call: the chat messages that were sent, and the reply."""

    turns: Turns
    reply: str | None
    """None where nothing came, or where only option scores were read."""


def conversation(program: dspy.Module, question: Any, prediction: Prediction) -> list[Exchange]:
    """List the calls that led to `prediction`, in order; empty for a program that asks no model.

    `program` is the preview that `PlannedCell.build_preview` makes.
    """
    if prediction.generations:
        replies: list[str | None] = [generation.text for generation in prediction.generations]
        if isinstance(program, Voting) and program.program.calls_for(question) == 1:
            (call,) = _calls(program.program, question, prediction)
            prompts = [_render(program, call)] * len(replies)
        else:
            prompts = replay(program, question, prediction.generations).prompts
    elif isinstance(program, AskingProgram) and not program.replayed and _renders(program, question):
        prompts = [_render(program, call) for call in _calls(program, question, prediction)]
        replies = [prediction.rationale] * (len(prompts) - 1) + [prediction.reply]
    else:
        return []
    return [Exchange(turns, reply) for turns, reply in zip(prompts, replies, strict=False)]


def _renders(program: AskingProgram, question: Any) -> bool:
    """Return whether prompts follow from what a prediction keeps: of answers in words, only those of a single call."""
    return isinstance(program, ExamProgram) or program.calls_for(question) == 1


def _render(program: AskingProgram, call: Call) -> Turns:
    demos = call.inputs.get("demos", call.predictor.demos)
    turns: Turns = program.adapter.format(call.predictor.signature, demos, call.inputs)
    return turns


def _calls(program: AskingProgram, question: Any, prediction: Prediction) -> Iterator[Call]:
    """Yield the calls that led to a prediction, prompts as they were at last: passages that did not fit are cut."""
    steps = program.steps(question)
    call = next(steps)
    full_length = len(call.inputs.get("passages") or "")
    while full_length - len(call.inputs.get("passages") or "") < (prediction.passages_cut or 0):
        try:
            call = steps.throw(ContextWindowExceededError())
        except ContextWindowExceededError:
            break
    yield call
    if prediction.status is Status.FAILED or prediction.reason is Reason.CONTEXT_OVERFLOW:
        # Nobody knows which call it was that broke; the first was sent.
        return
    for _ in range(program.calls_for(question) - 1):
        # Between its calls a program needs the reasoning; readings are used when all are there.
        call = steps.send(dspy.Prediction(rationale=prediction.rationale, generation=None, reading=None))
        yield call
    steps.close()
