"""What adapters and engines hand to each other; neither knows the other, nor DSPy's requests and responses.

A `Dialogue` is what a model is asked, and each `Generation` is a reply to it. A `ContinuationRequest` and its
`ContinuationLogprobs` are how likely a model finds each of several texts as what follows a prompt. `dspy_requests.py`
reads DSPy's requests and writes its responses.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import not_
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from medexam.frozen_model import FrozenModel

ChatMessage = dict[str, str]
"""One message of a chat template: `role` (`system`, `user` or `assistant`) and `content`."""


Reading = Literal["strict", "lenient"]
"""How a reply is read: by the format that was asked for, or as a careful marker would."""


SAMPLED = ("max_tokens", "temperature", "top_p", "top_k", "seed", "stop", "frequency_penalty", "presence_penalty")
"""Fields of a completions request that say how a reply is written."""


def read_sampling(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the settings of a language model say of how a reply is written; the rest is the server's default."""
    return {name: value for name in SAMPLED if (value := settings.get(name)) not in (None, (), [])}


def put_pictures(messages: Sequence[ChatMessage], pictures: Sequence[str]) -> list[dict[str, Any]]:
    """Write the messages in OpenAI's chat dialect, with pictures before the words of the last user message."""
    turns: list[dict[str, Any]] = [dict(message) for message in messages]
    if pictures:
        user_turn = next(message for message in reversed(turns) if message["role"] == "user")
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
        user_turn["content"] = [*parts, {"type": "text", "text": user_turn["content"]}]
    return turns


class Dialogue(NamedTuple):
    """Messages that are asked for replies."""

    messages: list[ChatMessage]
    """The system's first, if there is one; a user's last."""
    opening: str
    """The words that each reply continues; often empty."""
    sampling: Mapping[str, Any]
    """How the reply is written, as fields of `SAMPLED`; what is missing is the server's own default."""
    choices: tuple[str, ...] | None = None
    """The strings that the reply is one of; None if it is free."""
    continuations: "ContinuationRequest | None" = None
    """The texts whose log-probabilities are asked for instead of a reply; None if a reply is."""
    pictures: tuple[str, ...] = ()
    """Data URLs of what stands before the words of the user's last message."""
    plain: bool = False
    """Whether the reply continues the one message as plain text, without a chat template."""
    fields: Mapping[str, Any] = MappingProxyType({})
    """Further fields of a request in OpenAI's chat dialect, such as `tools` and `response_format`."""
    turns: list[dict[str, Any]] | None = None
    """The messages in OpenAI's chat dialect where they say more, such as calls of tools; None where they do not."""

    def with_seed(self, seed: int | None) -> "Dialogue":
        """Return the same, asked under another seed; None: under the server's own."""
        sampling = {name: value for name, value in self.sampling.items() if name != "seed"}
        return self._replace(sampling=sampling if seed is None else {**sampling, "seed": seed})

    def with_fields(self, fields: Mapping[str, Any]) -> "Dialogue":
        """Return the same with these further fields."""
        return self._replace(fields=fields)

    @property
    def key(self) -> str:
        """All that a reply depends on but the seed, as a text."""
        sampling = {**dict.fromkeys(SAMPLED), "stop": (), **self.sampling, "seed": None}
        parts = [self.messages, self.opening, [*sampling.values()], *self[3:7], dict(self.fields), self.turns]
        return json.dumps(parts, default=str, sort_keys=True)

    @property
    def media(self) -> list[str]:
        """The data URLs of its pictures and files, wherever they stand."""
        if self.turns is None:
            return [*self.pictures]
        contents = [turn.get("content") for turn in self.turns]
        parts = [part for content in contents if isinstance(content, list) for part in content]
        urls = [part.get("image_url", {}).get("url") or part.get("file", {}).get("file_data") for part in parts]
        return [*self.pictures, *(url for url in urls if url and url.startswith("data:"))]

    @property
    def turns_with_opening(self) -> list[ChatMessage]:
        """The messages, and the opening as the assistant's behind them if there is one."""
        return [*self.messages, *([{"role": "assistant", "content": self.opening}] if self.opening else [])]


class Ending(StrEnum):
    """How a reply ended."""

    COMPLETE = "complete"
    CUT = "cut"
    """At its budget of tokens."""
    REFUSED = "refused"
    """The model declined, and its provider says so."""
    FILTERED = "filtered"
    """The provider's filter withheld the reply or the rest of it."""
    ABORTED = "aborted"
    """The server broke off or names a reason that is not known: asking again may bring a whole reply."""


WITHHELD = (Ending.REFUSED, Ending.FILTERED)
"""Nothing in a reply that ended so is an answer."""
_ENDINGS: Mapping[Ending, tuple[str, ...]] = {
    Ending.COMPLETE: (
        *("stop", "tool_calls", "function_call"),  # OpenAI's chat and completions
        *("end_turn", "stop_sequence", "tool_use", "pause_turn"),  # Anthropic, Bedrock
        *("null", "none"),  # KoboldCpp
        *("eos", "eos_token", "complete", "completed", "tool_call"),  # Together, TGI, Cohere, OpenAI's responses, DSPy
    ),
    Ending.CUT: (
        *("length", "max_tokens", "max_output_tokens"),  # OpenAI, Anthropic, Gemini
        *("model_length", "model_context_window_exceeded"),  # Mistral, Anthropic
    ),
    Ending.REFUSED: ("refusal",),  # Anthropic
    Ending.FILTERED: (
        *("content_filter", "content_filtered", "guardrail_intervened"),  # OpenAI, Azure, Bedrock
        *("safety", "recitation", "blocklist", "prohibited_content", "spii", "image_safety"),  # Gemini
        *("error_toxic", "sensitive"),  # Cohere, Zhipu
    ),
}
_CUT = re.compile("length|(?<!rate_)limit")
FINISH_REASONS: Mapping[str, Ending] = MappingProxyType(
    {reason: ending for ending, reasons in _ENDINGS.items() for reason in reasons}
)
"""Finish reason in lower case, as the named APIs document it -> what it means; any other means `ABORTED`."""


def read_ending(reason: str | None) -> Ending:
    """Return what a finish reason means, however the server spells it; none at all means a whole reply."""
    if not reason:
        return Ending.COMPLETE
    # Some servers write more behind a colon.
    word = reason.lower().partition(":")[0].strip()
    return FINISH_REASONS.get(word) or (Ending.CUT if _CUT.search(word) else Ending.ABORTED)


def is_cut(reason: str | None) -> bool:
    """Return whether a reply with this finish reason was cut at its budget."""
    return read_ending(reason) is Ending.CUT


THINKING_OPENING, THINKING_CLOSING = "<think>", "</think>"
"""The marks of a block of thinking in a `Generation.text`."""


def join_thinking(thinking: str, content: str) -> str:
    """Write the text that `medexam.signatures.split_thinking` takes apart."""
    return f"{THINKING_OPENING}\n{thinking}\n{THINKING_CLOSING}\n\n{content}"


class ToolCall(FrozenModel):
    """A call of a tool that a model made in the form of its server, beside or instead of words."""

    id: str
    """What the tool's result refers to."""
    name: str
    args: dict[str, Any]


ReadBy = Literal["echo", "label"]
"""`echo`: the prompt once for each continuation, every token's probability returned. `label`: the prompt once, for
single tokens."""


class ContinuationRequest(FrozenModel):
    """Asks for the log-probabilities of `texts` instead of a reply."""

    texts: tuple[str, ...] = Field(min_length=1)
    """A leading space is part of the text."""
    read_by: ReadBy | Literal["auto"] = "auto"
    """`auto` reads single tokens by `label` and others by `echo`, as far as the model's server supports them."""
    given_opening: bool = False
    """Whether the tokens that all texts begin with, such as a space of its own before each number, count as prompt."""
    template: bool = False
    """Whether the prompt is a dialogue for the chat template; else it is the text of its one user message, behind the
    tokens with which the model's tokenizer begins every text."""


class Continuation(FrozenModel):
    """One text, token by token."""

    tokens: tuple[int, ...] = Field(min_length=1)
    """Token ids. A token that spans the end of the prompt and the beginning of the text is counted here."""
    logprobs: tuple[float, ...]
    """Log-probability of each token given the prompt and the tokens before it, nats."""

    @property
    def total(self) -> float:
        """Log-probability of the whole text, nats."""
        return math.fsum(self.logprobs)


class ContinuationLogprobs(FrozenModel):
    """The log-probabilities that were asked for."""

    continuations: tuple[Continuation, ...]
    """In the order of the texts."""
    read_by: ReadBy
    why: str
    """Why it was read by that method."""
    computed_tokens: int
    """Tokens that the model had to compute, without those from a cache; an estimate if a server has a prefix cache."""

    @property
    def mass(self) -> float | None:
        """Probability that the next token is any of the continuations; None unless each is a different single token."""
        first = {continuation.tokens[0]: continuation.logprobs[0] for continuation in self.continuations}
        if len(first) < len(self.continuations) or any(len(c.tokens) > 1 for c in self.continuations):
            return None
        return math.fsum(math.exp(logprob) for logprob in first.values())


Count = Annotated[int, Field(ge=0, lt=2**53)]
"""Tokens or characters, which tables hold in 64 bits and JSON exactly."""
_EMPTY, _UNSTORED = Field(exclude_if=not_), Field(exclude=True)


@dataclass(frozen=True, slots=True)
class Generation:
    """One reply as the engine gave it; None where nothing is known."""

    text: str | None = None
    """The reply as it came, thinking in its block; None where nothing was written, only read."""
    finish_reason: str | None = None
    """As the server wrote it, `stop` where it wrote none; `read_ending` says what it means."""
    model: str | None = None
    """The model as the server named it."""
    prompt_tokens: Count | None = None
    """0 for a reply that shared the prompt of the one before it."""
    completion_tokens: Count | None = None
    thinking_tokens: Count | None = None
    """Those of the completion's that are thinking."""
    refused: Annotated[bool, _EMPTY] = False
    """Whether the reply stands where the provider tells that the model declined."""
    tool_calls: Annotated[tuple[ToolCall, ...], _EMPTY] = ()
    """The tools that it calls; a reply that calls some may have no words."""
    logprobs: ContinuationLogprobs | None = None
    """The log-probabilities that were asked for instead of a reply."""
    provider: str | None = None
    """The provider behind a gateway that ran the model; None if the reply names none."""
    cost_usd: float | None = None
    """US dollars as the provider counts them, else the tokens by the price."""
    content: Annotated[str | None, _UNSTORED] = None
    """What it says where that is less than `text`: the server told its thinking apart, or the model declined."""
    thinking: Annotated[str | None, _UNSTORED] = None
    """What was thought, where the server told it apart."""
    place: Annotated[int | None, _UNSTORED] = None
    """Its place among the calls that are kept of its question, from 0; None where none are kept."""

    @property
    def words(self) -> str:
        """What it says, without what was thought."""
        return (self.text or "") if self.content is None else self.content

    @property
    def ending(self) -> Ending:
        """How it ended."""
        return Ending.REFUSED if self.refused else read_ending(self.finish_reason)

    @property
    def withheld(self) -> bool:
        """Whether it was refused or filtered, so that nothing in it is an answer."""
        return self.ending in WITHHELD
