"""The core of what a program answered: the fields that every answer has, whatever is kept beside it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, ValidationInfo

from medexam.frozen_model import is_none
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
Count = Annotated[int, Field(ge=0, lt=2**53)]
"""Tokens or characters, which tables hold in 64 bits and JSON exactly."""
PromptTokens = Annotated[Count | None, AfterValidator(lambda tokens: tokens or None)]
"""None if they are unknown. Earlier versions wrote 0 for that, and no prompt is empty."""


def _read_completion_tokens(tokens: int | None, validation: ValidationInfo) -> int | None:
    """Return None for the 0 that earlier versions wrote where a server reported nothing."""
    unknown = tokens == 0 and (validation.data.get("prompt_tokens") is None or validation.data.get("reply"))
    return None if unknown else tokens


CompletionTokens = Annotated[Count | None, AfterValidator(_read_completion_tokens)]
"""None if they are unknown; 0 where nothing was written, only read."""
ThinkingTokens = Annotated[Count | None, Field(exclude_if=is_none)]


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CorePrediction:
    """One program's answer to one question, without its evidence."""

    __slots__ = ()

    schema_version: Literal[1] = Field(default=1, alias="schema")
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
    lenient: Annotated[Number | None, Field(exclude_if=is_none)] = None
    """The option that only the lenient reader reads. It is `answer` too where the program reads leniently. Left out of
    a line where the strict reader reads an answer, or neither does."""
    text: str | None = None
    """The answer to an open question; None unless answered so."""
    span: tuple[Number, Number] | None = None
    """Where `text` stands in the question's context, first character and the one after the last; None where it was not
    looked for there."""
    alignment: Alignment | None = None
    """How it was found there; None where it was not looked for."""
    reply: str | None = None
    """What the model wrote, unchanged; None when no model was asked or none replied."""
    rationale: str | None = None
    """The reasoning before the answer; None when none was asked for."""
    prompt_tokens: PromptTokens = None
    """Of all prompts of the question; None if the server did not report those of one of them."""
    completion_tokens: CompletionTokens = None
    """Of all replies, likewise."""
    thinking_tokens: ThinkingTokens = None
    """Those of the completion's that are thinking. Left out of a line where the engine did not report it."""
    latency_s: float | None = None
    """From asking to answer, with the time spent waiting for a place in a batch; None when no model was asked."""
    waiting_s: Annotated[float | None, Field(exclude_if=is_none)] = None
    """The part of `latency_s` in which the request waited in this process before it was sent or computed. Left out of a
    line where no model was asked, and in older files. The rest is the answering, a server's own queue included."""
    model: str | None = None
    """The model as the server named it."""
    answered_by: str | None = None
    """Print of the model that answered, a key of `models.json`; None when no model was asked, and in older files."""
    finish_reason: str | None = None
    """As the server wrote it for the last call: `stop`, `length`, or a provider's own word."""
