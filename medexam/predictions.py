"""What a program answered: one `Prediction` is one line of `predictions.jsonl`.

It holds no gold, so a corrected answer key never needs the model again. It holds a score only where a metric of Python
gave one as the answer came: that metric is part of the run's identity.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    JsonValue,
    ValidationInfo,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs, CoreSchema, core_schema

from medexam.frozen_model import FrozenModel, SlottedModel
from medexam.model_calls import ToolCall, is_cut
from medexam.tasks import Alignment
from medexam.text import hide_secrets, writable


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


Reading = Literal["strict", "lenient"]
"""How a reply is read: by the format that was asked for, or as a careful marker would."""


class Outcome(NamedTuple):
    """What planning and paired statistics need to know of a prediction."""

    status: Status
    answer: int | None
    """The printed number of the chosen option; None unless answered."""


HiddenText = Annotated[str, AfterValidator(hide_secrets)]
"""A text without keys and passwords."""


class Failure(FrozenModel):
    """A fault, attributed once to the boundary that it crossed."""

    kind: str
    """The error's class name, such as `LMTransportError`."""
    message: HiddenText
    traceback: Annotated[HiddenText | None, Field(exclude_if=lambda traceback: traceback is None)] = None
    """Python's, of an exception in a program of the user's own. Left out of a line if there is none, and in older
    files."""


class RetrievedPassage(FrozenModel, allow_inf_nan=False):
    """A passage that a question's query found."""

    id: str
    source: str
    """The collection that it comes from."""
    score: float
    """In the retriever's own unit; the higher the more relevant."""
    kept: Annotated[bool | None, Field(exclude_if=lambda flag: flag is None)] = None
    """Whether a verifier kept it for the prompt; left out where none judged."""
    support: Annotated[float | None, Field(exclude_if=lambda support: support is None)] = None
    """The highest probability, 0 to 1, with which it entails an option, by a reader; left out where none judged."""


class FollowUp(FrozenModel):
    """A query that the model wrote while it was asked, and what became of it."""

    query: str
    passages: tuple[RetrievedPassage, ...]
    """What it found, most relevant first."""
    answer: str | None = None
    """What the model made of them; None where the passages themselves were kept."""


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
ThinkingTokens = Annotated[Count | None, Field(exclude_if=lambda tokens: tokens is None)]


class Reply(FrozenModel):
    """One of several replies that an answer was made of."""

    text: str
    finish_reason: str
    """As the server wrote it: `stop`, `length`, or a provider's own word."""
    prompt_tokens: Count | None = None
    """None when the engine did not report it."""
    completion_tokens: Count | None = None
    """None when the engine did not report it."""
    thinking_tokens: ThinkingTokens = None
    """Those of the completion's that are thinking. Left out where the engine did not report it."""
    seed: Annotated[int | None, Field(exclude_if=lambda seed: seed is None)] = None
    """The seed that it was drawn under. Left out where nothing was drawn, and in older files."""
    asked: Annotated[str | None, Field(exclude_if=lambda asked: asked is None)] = None
    """Which of the experiment's further models was asked, by its name in the spec. Left out: the run's model."""
    tool_calls: Annotated[tuple[ToolCall, ...], Field(exclude_if=lambda calls: not calls)] = ()
    """The tools that it calls. Left out where it calls none."""


class MetricScore(FrozenModel, allow_inf_nan=False):
    """What the metric of a `medexam.Evaluate` said of an answer."""

    metric: str
    """The metric's name."""
    value: bool | int | float
    """As the metric returned it; the `score` of a `dspy.Prediction`."""
    feedback: Annotated[str | None, Field(exclude_if=lambda feedback: feedback is None)] = None
    """What the metric said beside the number, or why a fault was scored. Left out where it said nothing."""
    details: Annotated[dict[str, Any], Field(exclude_if=lambda details: not details)] = Field(default_factory=dict)
    """Other fields of the metric's `dspy.Prediction`. Left out if there are none."""


def _writable_fields(arguments: Any) -> Any:
    """Return the fields of a mapping, or those that a prediction is made with, as `writable` leaves them."""
    if not isinstance(arguments, ArgsKwargs):
        return writable(arguments)
    # Most fields are empty or numbers, and there are as many predictions as questions.
    fields = arguments.kwargs or {}
    return ArgsKwargs(arguments.args, {name: value and writable(value) for name, value in fields.items()})


@dataclass(
    frozen=True,
    slots=True,
    kw_only=True,
    config=ConfigDict(extra="forbid", validate_by_name=True, allow_inf_nan=False, protected_namespaces=()),
)
class Prediction(SlottedModel):
    """One program's answer to one question."""

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
    lenient: Annotated[Number | None, Field(exclude_if=lambda lenient: lenient is None)] = None
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
    waiting_s: Annotated[float | None, Field(exclude_if=lambda waiting: waiting is None)] = None
    """The part of `latency_s` in which the request waited in this process before it was sent or computed. Left out of a
    line where no model was asked, and in older files. The rest is the answering, a server's own queue included."""
    model: str | None = None
    """The model as the server named it."""
    answered_by: str | None = None
    """Print of the model that answered, a key of `models.json`; None when no model was asked, and in older files."""
    finish_reason: str | None = None
    """As the server wrote it for the last call: `stop`, `length`, or a provider's own word."""
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
    """One row for each of `orders`: the scores in the order in which the options were shown. In a line without
    `orders`, row `r` shows first the option that stands at place `r` in the exam, and then those after it. None where
    only the exam's order was shown."""
    read_by: str | None = None
    """How the log-probabilities were read: `echo`, `trie` or `label`; None where none were."""
    read_why: str | None = None
    """Why they were read that way; None where none were."""
    passages: tuple[RetrievedPassage, ...] | None = None
    """The passages that were found, most relevant first; None where none were looked for."""
    passages_cut: Count | None = None
    """Characters of the passages that were left out because the context was too small; None where none were shown."""
    failure: Failure | None = None
    """Only when failed."""
    generations: tuple[Reply, ...] | None = None
    """Every reply in the order in which they came; None where the program ships, whose `reply` says all. Left out of
    a line where it is None."""

    outputs: Annotated[dict[str, JsonValue] | None, Field(exclude_if=lambda outputs: not outputs)] = None
    """What a module of the user's own returned, as JSON: beside `answer` and its reasoning, or every field for an
    example of `medexam.Evaluate`. Left out of a line where it returned nothing else."""
    votes: Annotated[tuple[int | None, ...] | None, Field(exclude_if=lambda votes: votes is None)] = None
    """The answer of each of several replies, in their order; None for a reply without a legal one. Left out
    of a line where no votes were counted."""
    orders: Annotated[tuple[tuple[int, ...], ...] | None, Field(exclude_if=lambda orders: orders is None)] = None
    """The orders in which the options were shown, each as their printed numbers; every order has as many `votes`, one
    order after the other, as printed numbers too, or a row of `order_scores`. Left out of a line where the exam's order
    alone was shown."""

    rounds: Annotated[tuple[tuple[FollowUp, ...], ...] | None, Field(exclude_if=lambda rounds: rounds is None)] = None
    """The queries that the model wrote in each round; left out of a line where it wrote none itself."""
    cited: Annotated[int | None, Field(exclude_if=lambda cited: cited is None)] = None
    """The place among `passages`, from 1, of the one that the reply names for its answer; 0: it says that none supports
    it. Left out of a line where it names none, or was not asked to."""
    cited_support: Annotated[float | None, Field(exclude_if=lambda support: support is None)] = None
    """The probability, 0 to 1, with which a sentence of that passage entails the stem with the answer, by a reader.
    Left out of a line where none was asked or no passage is named."""
    metric_score: Annotated[MetricScore | None, Field(exclude_if=lambda score: score is None)] = None
    """What the metric of a `medexam.Evaluate` said. Left out elsewhere, and where it could not be asked."""
    supported: Annotated[bool | None, Field(exclude_if=lambda supported: supported is None)] = None
    """Whether the kept passages support the answer, as a verifier says; False too where none was kept. Left out of a
    line where nothing was verified or there was no answer."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Store what a server wrote, whatever it wrote."""
        fields = handler(source)
        # The parser of JSON refuses halves of surrogate pairs itself, and to look for them takes longer than to parse.
        checked = core_schema.no_info_before_validator_function(_writable_fields, fields)
        return core_schema.json_or_python_schema(json_schema=fields, python_schema=checked)

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
    def option_probabilities(self) -> dict[int, float] | None:
        """Printed number of each option -> its share of the probability; None where options were not scored."""
        return None if self.option_scores is None else normalise_scores(self.option_scores)

    def to_json(self) -> dict[str, Any]:
        """Return the line of `predictions.jsonl` as a JSON-ready dictionary."""
        return self.model_dump(mode="json", by_alias=True, exclude=self._left_out)

    def to_line(self) -> bytes:
        """Write `to_json` as UTF-8, with the end of the line."""
        return self.__pydantic_serializer__.to_json(self, by_alias=True, exclude=self._left_out) + b"\n"

    @property
    def _left_out(self) -> set[str] | None:
        return {"generations"} if self.generations is None else None


def as_read(prediction: Prediction, reading: Reading) -> Prediction:
    """Return the prediction as it is under a reading; itself where it was read so, or both read the same."""
    answer = prediction.lenient if reading == "lenient" else None
    if prediction.lenient is None or prediction.answer == answer:
        return prediction
    if answer is not None:
        return prediction.model_copy(update={"status": Status.ANSWERED, "reason": None, "answer": answer})
    reason = Reason.TRUNCATED if is_cut(prediction.finish_reason) else Reason.UNPARSED
    return prediction.model_copy(update={"status": Status.UNANSWERED, "reason": reason, "answer": None})


def has_reply(prediction: Prediction) -> bool:
    """Return whether a model replied, in words or in scores."""
    signs = (prediction.finish_reason, prediction.reply, prediction.prompt_tokens, prediction.completion_tokens)
    return any(sign is not None for sign in signs)


def normalise_scores(scores: Mapping[int, float]) -> dict[int, float]:
    """Turn log scores into probabilities that sum to 1 (the softmax)."""
    best = max(scores.values())
    weights = {number: math.exp(score - best) for number, score in scores.items()}
    total = math.fsum(weights.values())
    return {number: weight / total for number, weight in weights.items()}


Answered = Outcome | Prediction
"""How a question came out: it has a `status` and an `answer`."""
