"""The calls of a model that an answer was made of, as they were sent and as their replies came."""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from operator import not_
from typing import Annotated, Any

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from medexam.frozen_model import SlottedModel
from medexam.model_calls import ChatMessage, ContinuationLogprobs, Dialogue, Generation, ToolCall
from medexam.predictions.core import Written

Count = Annotated[int, Field(ge=0, lt=2**53)]
"""Tokens or characters, which tables hold in 64 bits and JSON exactly."""
_Empty = Field(exclude_if=not_)
_REPLY = (
    *("finish_reason", "refused", "model", "prompt_tokens", "completion_tokens", "thinking_tokens"),
    *("provider", "cost_usd", "tool_calls"),
)
"""Fields that a call and its `Generation` have in common."""


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", protected_namespaces=()))
class ModelCall(SlottedModel):
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
    text: Written | None = None
    """The reply as it came, thinking in its block; None where nothing was written."""
    finish_reason: Written | None = None
    """As the server wrote it: `stop`, `length`, or a provider's own word."""
    refused: Annotated[bool, _Empty] = False
    """Whether the reply stands where the provider tells that the model declined."""
    model: Written | None = None
    """The model as the server named it."""
    prompt_tokens: Count | None = None
    """None if the server did not report it; 0 for a reply that shared the prompt of the one before it."""
    completion_tokens: Count | None = None
    thinking_tokens: Count | None = None
    """Those of the completion's that are thinking."""
    provider: str | None = None
    """The provider behind a gateway that ran the model."""
    cost_usd: float | None = None
    """US dollars as the provider counts them; None: tokens by the price list."""
    tool_calls: Annotated[tuple[ToolCall, ...], _Empty] = ()
    logprobs: ContinuationLogprobs | None = None
    """The log-probabilities of `texts`."""
    fault: Written | None = None
    """What the call broke with: the error's kind and its message."""

    @classmethod
    def of(cls, dialogue: Dialogue, asked: str | None = None) -> "ModelCall":
        """Return what a dialogue sends, without a reply yet."""
        request = dialogue.continuations
        plain = dialogue.plain or (request is not None and not request.template)
        return cls(
            messages=() if plain else tuple(dialogue.turns_with_opening),
            prompt=dialogue.messages[-1]["content"] + dialogue.opening if plain else None,
            pictures=tuple(
                hashlib.sha256(base64.b64decode(picture.partition(",")[2])).hexdigest() for picture in dialogue.media
            ),
            choices=dialogue.choices,
            texts=None if request is None else request.texts,
            sampling=dialogue.sampling.fields(),
            fields=dict(dialogue.fields),
            asked=asked,
        )

    def with_reply(self, generation: Generation) -> "ModelCall":
        """Return the call with a reply."""
        text = generation.reply if self.texts is None else None
        reply = {name: getattr(generation, name) for name in _REPLY}
        return replace(self, text=text, logprobs=generation.reading, **reply)

    def generation(self) -> Generation:
        """Return the reply as an engine gives it."""
        reply = {name: getattr(self, name) for name in _REPLY}
        named = {"finish_reason": self.finish_reason or "stop", "model": self.model or ""}
        return Generation(reply=self.text, reading=self.logprobs, **{**reply, **named})

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
