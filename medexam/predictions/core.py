"""What a prediction is made of: how a question came out, why, and the records that its evidence holds."""

from enum import StrEnum
from operator import not_
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from medexam.frozen_model import FrozenModel
from medexam.text import hide_secrets, writable

Written = Annotated[str, BeforeValidator(writable)]
"""What a server or a module wrote, whatever it wrote: halves of surrogate pairs are replaced by their escapes."""
HiddenText = Annotated[str, AfterValidator(hide_secrets)]
"""A text without keys and passwords."""
Number = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""The printed number of an option, or a place in a text, which tables hold in 32 bits."""


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
    reason: Reason | None = None
    """Only when unanswered."""


class RetrievedPassage(FrozenModel, allow_inf_nan=False):
    """A passage that a question's query found."""

    id: str
    source: str
    """The collection that it comes from."""
    score: float
    """In the retriever's own unit; the higher the more relevant."""
    kept: bool | None = None
    """Whether a verifier kept it for the prompt; left out where none judged."""


class FollowUp(FrozenModel):
    """A query that the model wrote while it was asked, and what became of it."""

    query: str
    passages: tuple[RetrievedPassage, ...]
    """What it found, most relevant first."""
    answer: str | None = None
    """What the model made of them; None where the passages themselves were kept."""


class Failure(FrozenModel):
    """A fault, attributed once to the boundary that it crossed."""

    kind: str
    """The error's class name, such as `LMTransportError`."""
    message: HiddenText
    traceback: HiddenText | None = None
    """Python's, of an exception in a program of the user's own. Left out of a line if there is none."""


class MetricScore(FrozenModel, allow_inf_nan=False):
    """What the metric of a `medexam.Evaluate` said of an answer."""

    metric: str
    """The metric's name."""
    value: bool | int | float
    """As the metric returned it; the `score` of a `dspy.Prediction`."""
    feedback: str | None = None
    """What the metric said beside the number, or why a fault was scored. Left out where it said nothing."""
    details: Annotated[dict[str, Any], Field(exclude_if=not_)] = Field(default_factory=dict)
    """Other fields of the metric's `dspy.Prediction`. Left out if there are none."""
