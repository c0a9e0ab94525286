"""A program whose calls are answered by replies that are stored, or by none; nothing is asked.

It serves three looks: the calls that a question begins with, a reply that the lenient reader reads, and replies that
today's readers read anew.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import dspy
from dspy.utils.exceptions import LMError

from medexam.errors import ProgramFaultError
from medexam.model_calls import Dialogue, Generation, Reading
from medexam.predictions.calls import ModelCall
from medexam.programs.program_output import ProgramOutput
from medexam.programs.recording import AsyncRecordingEngine, RecordingEngine, kept_calls
from medexam.signatures.adapter import read_as
from medexam.signatures.direct import OTHER_MODELS, run_program


class _NoReplyError(BaseException):
    """A program asks for more than is stored; no `except Exception` of the user's code takes it for a model's fault."""


class _StoredReplies:
    """An engine that gives each dialogue its stored reply; it takes what the engine `like` takes."""

    def __init__(self, calls: Sequence[ModelCall], like: object) -> None:
        self._waiting = [call for call in calls if call.has_reply]
        # What DSPy's adapters look up, under DSPy's names.
        sent = {name for call in calls for name in call.fields}
        self.supports_function_calling: bool = getattr(like, "supports_function_calling", False) or "tools" in sent
        self.supports_response_schema: bool = (
            getattr(like, "supports_response_schema", False) or "response_format" in sent
        )
        self.supported_params = frozenset(getattr(like, "supported_params", ()))

    def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the reply to these words, under this seed if several are stored."""
        sent = ModelCall.of(dialogue)
        equal_calls = [call for call in self._waiting if call.words_sent == sent.words_sent]
        same = [call for call in equal_calls if call.sampling.get("seed") == sent.sampling.get("seed")]
        for call in (*same, *equal_calls):
            self._waiting.remove(call)
            return [call.generation()]
        raise _NoReplyError


class MadeUpReplies(Protocol):
    """An engine of a look: it replies at once, and asks nobody."""

    def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the replies to one dialogue."""


class _Async:
    def __init__(self, replies: MadeUpReplies) -> None:
        self._replies = replies

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the same replies."""
        return self._replies.reply(dialogue)


class Look(NamedTuple):
    """What a program did with the replies that it was given."""

    calls: tuple[ModelCall, ...]
    """What it asked, in order; the last one has no reply where it asked for more than was stored."""
    output: ProgramOutput | None
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
    replies = _StoredReplies(calls, getattr(lm, "engine", None))
    others = {name: answered_by(replies, other) for name, other in (dspy.settings.get(OTHER_MODELS) or {}).items()}
    settings = {"lm": answered_by(replies, lm), **({OTHER_MODELS: others} if others else {})}
    with dspy.context(disable_history=True, **settings), kept_calls() as keeper, read_as(reading):
        try:
            output = ProgramOutput.of(await run_program(program, question))
        except ProgramFaultError as error:
            fault = error
        except (LMError, _NoReplyError):
            pass
    return Look(keeper.all(), output, fault)


def answered_by(replies: MadeUpReplies, lm: dspy.LM | None = None) -> dspy.LM:
    """Return a language model that is answered by these replies; like `lm`, if there is one."""
    recorder = AsyncRecordingEngine(_Async(replies))
    kind = dspy.LM if lm is None else type(lm)
    answered: dspy.LM = kind(
        "medexam/stored" if lm is None else lm.model,
        engine=RecordingEngine(replies, declaring=replies),
        async_engine=recorder,
        cache=False,
        num_retries=0,
        **({} if lm is None else lm.kwargs),
    )
    answered.direct_engine = recorder
    return answered
