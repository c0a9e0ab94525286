"""A program whose calls are answered by replies that are stored, or by none; nothing is asked.

It serves three looks: the calls that a question begins with, a reply that the lenient reader reads, and replies that
today's readers read anew.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import dspy
from dspy.utils.exceptions import LMError

from medexam.errors import ProgramFaultError
from medexam.model_calls import Dialogue, Generation, Reading
from medexam.predictions.calls import ModelCall
from medexam.programs.base import READING
from medexam.programs.kept import kept_calls
from medexam.programs.lm import OTHER_MODELS, EngineLM
from medexam.programs.program_output import ProgramOutput


class _NoReplyError(BaseException):
    """A program asks for more than is stored; no `except Exception` of the user's code takes it for a model's fault."""


class _StoredReplies:
    """An engine that gives each dialogue its stored reply; it takes what the engine `like` takes."""

    def __init__(self, calls: Sequence[ModelCall], like: object = None) -> None:
        self._waiting = [call for call in calls if call.has_reply]
        # What DSPy's adapters look up, under DSPy's names.
        names = {name for call in calls for name in call.fields}
        self.supports_function_calling = getattr(like, "supports_function_calling", False) or "tools" in names
        self.supports_response_schema = getattr(like, "supports_response_schema", False) or "response_format" in names
        self.supported_params = frozenset(getattr(like, "supported_params", ()))

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the reply to these words, under this seed if several are stored."""
        record = ModelCall.of(dialogue)
        equal_calls = [call for call in self._waiting if call.words_sent == record.words_sent]
        same = [call for call in equal_calls if call.sampling.get("seed") == record.sampling.get("seed")]
        for call in (*same, *equal_calls):
            self._waiting.remove(call)
            return call.generation()
        raise _NoReplyError


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
    replies = _StoredReplies(calls, getattr(lm, "live_engine", None))
    others = {name: answered_by(replies, other) for name, other in (dspy.settings.get(OTHER_MODELS) or {}).items()}
    settings = {"lm": answered_by(replies, lm), READING: reading, **({OTHER_MODELS: others} if others else {})}
    with dspy.context(disable_history=True, **settings), kept_calls() as keeper:
        try:
            output = ProgramOutput.of(await program.acall(question=question))
        except ProgramFaultError as error:
            fault = error
        except (LMError, _NoReplyError):
            pass
    return Look(keeper.all(), output, fault)


def answered_by(engine: Any, lm: dspy.LM | None = None) -> EngineLM:
    """Return a language model that is answered by an engine; with the settings of `lm`, if there is one."""
    settings = {"temperature": None, "max_tokens": None} if lm is None else lm.kwargs
    return EngineLM(engine, "medexam/stored" if lm is None else lm.model, **settings)
