"""What a program answered: one `Prediction` is one line of `predictions.jsonl`, with the calls that it was made of.

It holds no gold, so a corrected answer key never needs the model again. It holds a score only where a metric of Python
gave one as the answer came: that metric is part of the run's identity.
"""

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from operator import attrgetter, not_
from typing import Annotated, Any, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, model_validator
from pydantic.dataclasses import dataclass

from medexam.frozen_model import FrozenModel, SlottedModel
from medexam.model_calls import (
    ChatMessage,
    Count,
    Dialogue,
    Generation,
    Reading,
    is_cut,
)
from medexam.questions import Alignment
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


_Empty = Field(exclude_if=not_)
_REPLY = tuple(name for name in Generation.__annotations__ if name not in ("content", "thinking", "place"))
_read_reply = attrgetter(*_REPLY)


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", protected_namespaces=()))
class ModelCall(SlottedModel, Generation):
    """One call: what was sent, and what came. A line leaves out what is None or empty."""

    messages: Annotated[tuple[ChatMessage, ...], _Empty] = ()
    """The turns, the system's first; an opening that the reply continues is a last one of the assistant. Empty where
    plain text was sent, and where nobody knows."""
    prompt: str | None = None
    """Plain text that the reply continues."""
    pictures: Annotated[tuple[str, ...], _Empty] = ()
    """SHA-256 of each picture and file, as it was sent."""
    choices: tuple[str, ...] | None = None
    """The strings that the reply is one of."""
    texts: tuple[str, ...] | None = None
    """The texts whose log-probabilities were asked for instead of a reply."""
    sampling: Annotated[dict[str, Any], _Empty] = Field(default_factory=dict)
    """How the reply is drawn, in the names of a completions request; what is missing is the server's own default."""
    fields: Annotated[dict[str, Any], _Empty] = Field(default_factory=dict)
    """Further fields of the request in OpenAI's chat dialect, such as `tools`."""
    asked: str | None = None
    """Which of the experiment's further models was asked, by its name in the spec; None: the run's model."""
    fault: str | None = None
    """What the call broke with: the error's kind and its message."""

    @classmethod
    def of(
        cls,
        dialogue: Dialogue,
        generation: Generation | None = None,
        asked: str | None = None,
        fault: str | None = None,
    ) -> "ModelCall":
        """Return what a dialogue sent, with the reply if there is one."""
        request, call = dialogue.continuations, dict[str, Any]()
        if generation is not None:
            call = dict(zip(_REPLY, _read_reply(generation), strict=True))
            call |= {"text": None} if request else {}
        if dialogue.pictures or dialogue.turns:
            call["pictures"] = tuple(
                hashlib.sha256(base64.b64decode(url.partition(",")[2])).hexdigest() for url in dialogue.media
            )
        if dialogue.plain or (request and not request.template):
            call["prompt"] = dialogue.messages[-1]["content"] + dialogue.opening
        else:
            opened = dialogue.opening and {"role": "assistant", "content": dialogue.opening}
            call["messages"] = (*dialogue.messages, opened) if opened else tuple(dialogue.messages)
        call |= {"choices": dialogue.choices, "texts": request and request.texts, "asked": asked, "fault": fault}
        call |= {"sampling": dialogue.sampling, "fields": dict(dialogue.fields)}
        try:
            return cls(**call)
        except ValueError:
            # Halves of surrogate pairs are no text.
            return cls(**writable(call))

    @property
    def words_sent(self) -> str:
        """All that was sent but how the reply is drawn, as a text that tells one call from another."""
        parts = [self.messages, self.prompt, self.pictures, self.choices, self.texts, self.fields]
        return json.dumps(parts, sort_keys=True, default=str)

    @property
    def turn(self) -> str | None:
        """All that the assistant's turn holds: the opening that was given, and the reply; None without a reply."""
        opening = self.messages[-1]["content"] if self.messages and self.messages[-1]["role"] == "assistant" else ""
        return None if self.text is None else opening + self.text

    @property
    def has_reply(self) -> bool:
        """Whether a model replied, in words or in scores."""
        return self.fault is None and self.finish_reason is not None


def count_tokens(calls: Sequence[ModelCall], name: str) -> Any:
    """Sum a count of tokens, or a cost, over the replies; None if one of them does not tell, or there is none."""
    total: float | None = None
    for call in calls:
        if call.has_reply:
            if (count := getattr(call, name)) is None:
                return None
            total = count + (total or 0)
    return total


@dataclass(
    frozen=True,
    slots=True,
    kw_only=True,
    config=ConfigDict(extra="forbid", validate_by_name=True, allow_inf_nan=False, protected_namespaces=()),
)
class Prediction(SlottedModel):
    """One program's answer to one question, with all evidence. A line leaves out what is None."""

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
    """The option that only the lenient reader reads. It is `answer` too where the program reads leniently. None where
    the strict reader reads an answer, or neither does."""
    text: Written | None = None
    """The answer to an open question; None unless answered so."""
    span: tuple[Number, Number] | None = None
    """Where `text` stands in the question's context, first character and the one after the last; None where it was not
    looked for there."""
    alignment: Alignment | None = None
    """How it was found there; None where it was not looked for."""
    rationale: Written | None = None
    """The reasoning before the answer; None when none was asked for."""
    calls: Annotated[tuple[ModelCall, ...], Field(exclude_if=not_)] = ()
    """Every call of a model in the order in which they were begun; none where no model was asked."""
    replied: int | None = None
    """Which of them holds the reply that the answer stands in, from 0; None: the last one with a reply."""
    latency_s: float | None = None
    """From asking to answer, with the time spent waiting for a place in a batch; None when no model was asked."""
    answered_by: str | None = None
    """Print of the model that answered, a key of `models.json`; None when no model was asked."""

    option_scores: dict[int, float] | None = None
    """Printed number of each option -> its score, the higher the likelier; None where options were not scored."""
    score_unit: str | None = None
    """The unit of `option_scores`, such as `nats per token`."""
    score_norm: str | None = None
    """What a score was divided by or compared with; see docs/protocol.md."""
    tied: Number | None = None
    """How many options share the best score: 1 where one option is ahead. Of tied options the first is chosen."""
    label_mass: float | None = None
    """Probability that the next token is any of the option numbers, 0 to 1; None where no numbers were read."""
    order_scores: tuple[tuple[float, ...], ...] | None = None
    """One row for each of `orders`: the scores in the order in which the options were shown. Without `orders`, row `r`
    shows first the option that stands at place `r` in the exam, and then those after it. None where only the exam's
    order was shown."""
    read_by: str | None = None
    """How the log-probabilities were read: `echo` or `label`; None where none were."""
    read_why: str | None = None
    """Why they were read that way; None where none were."""
    passages: tuple[RetrievedPassage, ...] | None = None
    """The passages that were found, most relevant first; None where none were looked for."""
    passages_cut: Count | None = None
    """Characters of the passages that were left out because the context was too small; None where none were shown."""
    failure: Failure | None = None
    """Only when failed."""
    outputs: Annotated[dict[str, JsonValue] | None, BeforeValidator(writable), Field(exclude_if=not_)] = None
    """What a module of the user's own returned, as JSON: beside `answer` and its reasoning, or every field for an
    example of `medexam.Evaluate`."""
    votes: tuple[int | None, ...] | None = None
    """The answer of each of several replies, or of a program's branches, in their order; None for a reply without a
    legal one."""
    orders: tuple[tuple[int, ...], ...] | None = None
    """The orders in which the options were shown, each as their printed numbers; every order has as many `votes`, one
    order after the other, as printed numbers too, or a row of `order_scores`. None where the exam's order alone was
    shown."""
    rounds: tuple[tuple[FollowUp, ...], ...] | None = None
    """The queries that the model wrote in each round; None where it wrote none itself."""
    cited: int | None = None
    """The place among `passages`, from 1, of the one that the reply names for its answer; 0: it says that none supports
    it. None where it names none, or was not asked to."""
    metric_score: MetricScore | None = None
    """What the metric of a `medexam.Evaluate` said; None elsewhere, and where it could not be asked."""
    supported: bool | None = None
    """Whether the kept passages support the answer, as a verifier says; False too where none was kept. None where
    nothing was verified or there was no answer."""

    @model_validator(mode="after")
    def _status_agrees(self) -> Self:
        if (self.answer is not None) + (self.text is not None) != (self.status is Status.ANSWERED):
            raise ValueError(f"{self.question}: one answer goes with status 'answered' and none with any other")
        if self.lenient is not None and self.answer not in (None, self.lenient):
            raise ValueError(f"{self.question}: what only the lenient reader reads is the answer, or there is none")
        if (self.reason is not None) != (self.status is Status.UNANSWERED):
            raise ValueError(f"{self.question}: a reason goes with status 'unanswered' and with no other")
        if (self.failure is not None) != (self.status is Status.FAILED):
            raise ValueError(f"{self.question}: a failure goes with status 'failed' and with no other")
        return self

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
        return count_tokens(self.calls, "prompt_tokens")  # type: ignore[no-any-return]

    @property
    def completion_tokens(self) -> int | None:
        """Tokens of all replies, likewise."""
        return count_tokens(self.calls, "completion_tokens")  # type: ignore[no-any-return]

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all calls; None if the cost of one of them is unknown."""
        return count_tokens(self.calls, "cost_usd")  # type: ignore[no-any-return]

    @property
    def thinking_tokens(self) -> int | None:
        """Those of the completions' that are thinking, as far as they are reported; None where none is."""
        counts = [call.thinking_tokens for call in self.calls if call.thinking_tokens is not None]
        return sum(counts) if counts else None

    @property
    def option_probabilities(self) -> dict[int, float] | None:
        """Printed number of each option -> its share of the probability; None where options were not scored."""
        return None if self.option_scores is None else normalise_scores(self.option_scores)

    def scores_of(self, numbers: Sequence[int]) -> list[float | None] | None:
        """List the scores of these options; None where options were not scored."""
        scores = self.option_scores
        return None if scores is None else [scores.get(number) for number in numbers]

    def to_json(self) -> dict[str, Any]:
        """Return the line of `predictions.jsonl` as a JSON-ready dictionary."""
        return self.__pydantic_serializer__.to_python(self, mode="json", exclude_none=True)  # type: ignore[no-any-return]


def normalise_scores(scores: Mapping[int, float]) -> dict[int, float]:
    """Turn log scores into probabilities that sum to 1 (the softmax)."""
    return dict(zip(scores, softmax(list(scores.values())), strict=True))


def softmax(scores: Sequence[float]) -> list[float]:
    """Turn log scores into probabilities that sum to 1."""
    best = max(scores)
    weights = [math.exp(score - best) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def as_read(prediction: Prediction, reading: Reading) -> Prediction:
    """Return the prediction as it is under a reading; itself where it was read so, or both read the same."""
    answer = prediction.lenient if reading == "lenient" else None
    if prediction.lenient is None or prediction.answer == answer:
        return prediction
    if answer is not None:
        return prediction.model_copy(update={"status": Status.ANSWERED, "reason": None, "answer": answer})
    reason = Reason.TRUNCATED if is_cut(prediction.finish_reason) else Reason.UNPARSED
    return prediction.model_copy(update={"status": Status.UNANSWERED, "reason": reason, "answer": None})


Answered = Outcome | Prediction
"""How a question came out: it has a `status` and an `answer`."""
