"""What a program asks, found out by running it with replies that are known: nothing is asked.

It serves looks at prompts (the first one in a plan, all those of a stored answer in a trace), and reading stored
replies again.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import dspy
from dspy.lm15 import LM15Error, Message, Request, Response, TextPart, Usage
from dspy.utils.exceptions import LMError

from medexam.errors import ProgramFaultError

Turns = list[dict[str, str]]


class _Replies:
    """An engine that gives known replies in order, and fails when there are no more."""

    def __init__(self, replies: Sequence[str]) -> None:
        self._replies = list(replies)
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Response:
        """Return the next reply."""
        self.requests.append(request)
        if len(self.requests) > len(self._replies):
            raise LM15Error("no more replies are known")
        text = self._replies[len(self.requests) - 1]
        return Response(
            id=None,
            model=request.model,
            message=Message.assistant([TextPart(text)]),
            finish_reason="stop",
            usage=Usage(input_tokens=0, output_tokens=0),
        )


class _AsyncReplies:
    def __init__(self, replies: _Replies) -> None:
        self._replies = replies

    async def complete(self, request: Request) -> Response:
        """Return the next reply."""
        return self._replies.complete(request)


def replay(program: dspy.Module, question: Any, replies: Sequence[str]) -> tuple[list[Turns], dspy.Prediction | None]:
    """Return the turns of each prompt that `program` asks if its calls get `replies`, and what it then answers.

    None where it asks for more than `replies`, as it does whenever only its first prompts are wanted.
    """
    engine = _Replies(replies)
    lm = dspy.LM("medexam/replay", engine=engine, async_engine=_AsyncReplies(engine), cache=False, num_retries=0)
    outcome = None
    with dspy.context(lm=lm, disable_history=True), suppress(LMError, ProgramFaultError):
        outcome = program(question=question)
    return [_turns(request) for request in engine.requests], outcome


def _turns(request: Request) -> Turns:
    turns = [{"role": message.role, "content": _text(message.parts)} for message in request.messages]
    if request.system is not None:
        system = request.system if isinstance(request.system, str) else _text(request.system)
        turns.insert(0, {"role": "system", "content": system})
    return turns


def _text(parts: Sequence[Any]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))
