"""What a program asks, found out by running it with replies that are known: nothing is asked.

It serves looks at prompts (the first one in a plan, all those of a stored answer in a trace), and reading stored
replies again.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, ToolCallPart, ToolResultPart, Usage
from dspy.utils.exceptions import LMError

from medexam.errors import ProgramFaultError
from medexam.model_calls import CONTINUATIONS
from medexam.predictions import Reply
from medexam.programs.recording import AsyncRecordingEngine, RecordingEngine

Turns = list[dict[str, str]]


class Replayed(NamedTuple):
    """What a program asked and answered with known replies."""

    prompts: list[Turns]
    """The turns of each call, in order."""
    outcome: dspy.Prediction | None
    """Its answer; None where it asks for more than is known, as it does whenever only its first prompts are wanted."""
    fault: ProgramFaultError | None
    """What the user's code raised of its own accord; None where it raised nothing."""


class _NoMoreRepliesError(BaseException):
    """A program asks for more than is known; no `except Exception` of the user's code takes it for a model's fault."""


class _Replies:
    """An engine that gives known replies in order, and ends the program when there are no more."""

    def __init__(self, replies: Sequence[str | Reply]) -> None:
        self._replies = list(map(_parts, replies))
        self.requests: list[Request] = []
        self.supports_function_calling = any(
            isinstance(part, ToolCallPart) for parts in self._replies for part in parts
        )
        """A model that called a tool was offered tools in its server's own form, which no prompt shows."""

    def complete(self, request: Request) -> Response:
        """Return the next reply."""
        self.requests.append(request)
        if len(self.requests) > len(self._replies) or CONTINUATIONS in (request.config.extensions or {}):
            # Words tell nothing of how likely texts are.
            raise _NoMoreRepliesError
        parts = self._replies[len(self.requests) - 1]
        return Response(
            id=None,
            model=request.model,
            message=Message.assistant(parts),
            finish_reason="stop",
            usage=Usage(input_tokens=0, output_tokens=0),
        )


class _AsyncReplies:
    def __init__(self, replies: _Replies) -> None:
        self._replies = replies

    async def complete(self, request: Request) -> Response:
        """Return the next reply."""
        return self._replies.complete(request)


def replay(program: dspy.Module, question: Any, replies: Sequence[str | Reply]) -> Replayed:
    """Run `program` on a question with `replies` for its calls, in their order."""
    engine = _Replies(replies)
    recorders = {"engine": RecordingEngine(engine), "async_engine": AsyncRecordingEngine(_AsyncReplies(engine))}
    lm = dspy.LM("medexam/replay", **recorders, cache=False, num_retries=0)
    outcome, fault = None, None
    with dspy.context(lm=lm, disable_history=True), suppress(LMError, _NoMoreRepliesError):
        try:
            outcome = program(question=question)
        except ProgramFaultError as error:
            fault = error
    prompts = [request_turns(request) for request in engine.requests]
    # What a program raises after it asked for more than is known may come of that alone.
    return Replayed(prompts, outcome, fault if len(prompts) <= len(replies) else None)


def _parts(reply: str | Reply) -> list[TextPart | ToolCallPart]:
    if isinstance(reply, str):
        return [TextPart(reply)]
    calls = [ToolCallPart(call.id, call.name, call.args) for call in reply.tool_calls]
    return [*([] if calls and not reply.text else [TextPart(reply.text)]), *calls]


def request_turns(request: Request) -> Turns:
    """Return the turns of a request as texts, the system's first; calls of tools and their results are lines."""
    turns = [{"role": message.role, "content": _text(message.parts)} for message in request.messages]
    if request.system is not None:
        system = request.system if isinstance(request.system, str) else _text(request.system)
        turns.insert(0, {"role": "system", "content": system})
    return turns


def _text(parts: Sequence[Any]) -> str:
    """Return the words of a turn; a tool's call is its name and its arguments as JSON, a line each."""
    words = "".join(part.text for part in parts if isinstance(part, TextPart))
    calls = [f"{part.name} {json.dumps(part.input)}" for part in parts if isinstance(part, ToolCallPart)]
    results = [_text(part.content) for part in parts if isinstance(part, ToolResultPart)]
    return "\n".join(filter(None, [words, *calls, *results]))
