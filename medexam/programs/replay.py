"""What a program asks, found out by running it with replies that are known: nothing is asked.

It serves looks at prompts (the first one in a plan, all those of a stored answer in a trace), and reading stored
replies again.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import dspy
from dspy.utils.exceptions import LMError

from medexam.errors import ProgramFaultError
from medexam.model_calls import ChatMessage, Dialogue, Generation
from medexam.predictions.evidence.replies import Reply
from medexam.programs.recording import AsyncRecordingEngine, RecordingEngine

Turns = list[ChatMessage]


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
        self._replies = list(map(_generation, replies))
        self.dialogues: list[Dialogue] = []
        self.supports_function_calling = any(generation.tool_calls for generation in self._replies)
        """A model that called a tool was offered tools in its server's own form, which no prompt shows."""

    def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the next reply."""
        self.dialogues.append(dialogue)
        if len(self.dialogues) > len(self._replies) or dialogue.continuations is not None:
            # Words tell nothing of how likely texts are.
            raise _NoMoreRepliesError
        return [self._replies[len(self.dialogues) - 1]]


class _AsyncReplies:
    def __init__(self, replies: _Replies) -> None:
        self._replies = replies

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the next reply."""
        return self._replies.reply(dialogue)


def replay(program: dspy.Module, question: Any, replies: Sequence[str | Reply]) -> Replayed:
    """Run `program` on a question with `replies` for its calls, in their order."""
    engine = _Replies(replies)
    recorder, asynchronous = RecordingEngine(engine, declaring=engine), AsyncRecordingEngine(_AsyncReplies(engine))
    lm = dspy.LM("medexam/replay", engine=recorder, async_engine=asynchronous, cache=False, num_retries=0)
    lm.direct_engine = asynchronous
    outcome, fault = None, None
    with dspy.context(lm=lm, disable_history=True), suppress(LMError, _NoMoreRepliesError):
        try:
            outcome = program(question=question)
        except ProgramFaultError as error:
            fault = error
    prompts = [dialogue.turns_with_opening for dialogue in engine.dialogues]
    # What a program raises after it asked for more than is known may come of that alone.
    return Replayed(prompts, outcome, fault if len(prompts) <= len(replies) else None)


def _generation(reply: str | Reply) -> Generation:
    if isinstance(reply, str):
        return Generation(reply, "stop", "replay", 0, 0)
    return Generation(reply.text, "stop", "replay", 0, 0, tool_calls=reply.tool_calls)
