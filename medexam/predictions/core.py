"""The core of what a program answered: the fields that every answer has, whatever is kept beside it."""

from dataclasses import dataclass
from enum import StrEnum
from operator import not_
from typing import Annotated, NamedTuple

from pydantic import Field

from medexam.predictions.calls import ModelCall, count_tokens
from medexam.questions import Alignment


class Status(StrEnum):
    """How a question came out."""

    ANSWERED = "answered"
    """A legal option was chosen, or an open question answered."""
    UNANSWERED = "unanswered"
    """There is no such answer, and asking again would not change it."""
    FAILED = "failed"
    """A transport or server fault: asking again may cure it; pending again on resume, never scored."""


class Reason(StrEnum):
    """Why a question stayed unanswered."""

    UNPARSED = "unparsed"
    TRUNCATED = "truncated"
    TRUNCATED_THINKING = "truncated_thinking"
    """The reply was cut at its budget before its thinking was over."""
    EMPTY = "empty"
    """The model replied without a word."""
    REFUSED = "refused"
    """The model declined, and its provider says so."""
    FILTERED = "filtered"
    """The provider's filter withheld the reply."""
    ABSTAINED = "abstained"
    CONTEXT_OVERFLOW = "context_overflow"
    NOT_IN_CONTEXT = "not_in_context"
    """What was to be quoted does not stand in the text."""
    FAULTED = "faulted"
    """The module or the metric of a `medexam.Evaluate` raised, and such faults are scored by request."""
    NOT_TOLD = "not_told"
    """Imported results say that the answer is wrong, and not which it was."""


class Outcome(NamedTuple):
    """What planning and paired statistics need to know of a prediction."""

    status: Status
    answer: int | None
    """The printed number of the chosen option; None unless answered."""


Number = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""The printed number of an option, or a place in a text, which tables hold in 32 bits."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CorePrediction:
    """One program's answer to one question, without its evidence."""

    __slots__ = ()

    question: str
    """The question's key."""
    program: str
    """The program's short name, such as `zero_shot-guided`."""
    spec_digest: str
    """Identity of everything that the answer depends on; see docs/architecture.md."""
    status: Status
    reason: Reason | None = None
    """Only when unanswered."""
    answer: Number | None = None
    """The printed number of the chosen option; None unless answered so."""
    lenient: Number | None = None
    """The option that only the lenient reader reads. It is `answer` too where the program reads leniently. Left out of
    a line where the strict reader reads an answer, or neither does."""
    text: str | None = None
    """The answer to an open question; None unless answered so."""
    span: tuple[Number, Number] | None = None
    """Where `text` stands in the question's context, first character and the one after the last; None where it was not
    looked for there."""
    alignment: Alignment | None = None
    """How it was found there; None where it was not looked for."""
    rationale: str | None = None
    """The reasoning before the answer; None when none was asked for."""
    calls: Annotated[tuple[ModelCall, ...], Field(exclude_if=not_)] = ()
    """Every call of a model in the order in which they were begun; none where no model was asked."""
    replied: int | None = None
    """Which of them holds the reply that the answer stands in, from 0; None: the last one with a reply."""
    latency_s: float | None = None
    """From asking to answer, with the time spent waiting for a place in a batch; None when no model was asked."""
    waiting_s: float | None = None
    """The part of `latency_s` in which the request waited in this process before it was sent or computed; None where
    no model was asked. The rest is the answering, a server's own queue included."""
    answered_by: str | None = None
    """Print of the model that answered, a key of `models.json`; None when no model was asked."""

    @property
    def last_call(self) -> ModelCall | None:
        """The call that the answer stands in; None where no reply came."""
        if self.replied is not None:
            return self.calls[self.replied]
        return next((call for call in reversed(self.calls) if call.has_reply), None)

    @property
    def reply(self) -> str | None:
        """All that the assistant's turn holds there, a given opening included; None where nothing was written."""
        return None if (call := self.last_call) is None else call.turn

    @property
    def model(self) -> str | None:
        """The model as the server named it; None when no model was asked."""
        call = self.last_call or next(iter(self.calls), None)
        return None if call is None else call.model

    @property
    def finish_reason(self) -> str | None:
        """As the server wrote it for that call."""
        return None if (call := self.last_call) is None else call.finish_reason

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens of all prompts of the question; None if a server did not report those of one of them."""
        return count_tokens(self.calls, "prompt_tokens")

    @property
    def completion_tokens(self) -> int | None:
        """Tokens of all replies, likewise."""
        return count_tokens(self.calls, "completion_tokens")

    @property
    def thinking_tokens(self) -> int | None:
        """Those of the completions' that are thinking, as far as they are reported; None where none is."""
        counts = [call.thinking_tokens for call in self.calls if call.thinking_tokens is not None]
        return sum(counts) if counts else None
