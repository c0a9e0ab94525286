"""How likely a model finds each of several texts as what follows a prompt: what is asked, and what comes back.

Programs ask and engines answer in these words; neither knows the other.
"""

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

CONTINUATIONS = "continuations"
"""Key of `Request.config.extensions` that holds a `ContinuationRequest`, and of `Response.provider_data` that holds
the `ContinuationLogprobs` which answers it."""

ReadBy = Literal["echo", "trie", "label"]
"""`echo`: the prompt once for each continuation, every token's probability returned. `trie`: the prompt once, then one
step at each place where continuations go on. `label`: the prompt once, for continuations of one token each."""


class ContinuationRequest(BaseModel):
    """Asks for the log-probabilities of `texts` in the place of a reply."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    texts: tuple[str, ...] = Field(min_length=1)
    """A leading space is part of the text."""
    read_by: ReadBy | Literal["auto"] = "auto"
    """`auto` takes the way with the fewest tokens to compute, of those that the model's server offers."""
    given_opening: bool = False
    """Whether the tokens that all texts begin with, such as a space of its own before each number, count as prompt."""
    template: bool = False
    """Whether the prompt is a dialogue for the chat template; else it is its one user turn's text as it stands, behind
    the tokens that the model's tokenizer opens every text with."""


class Continuation(BaseModel):
    """One text, token by token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens: tuple[int, ...] = Field(min_length=1)
    """Token ids. Where a token spans the end of the prompt and the beginning of the text, it is counted here."""
    logprobs: tuple[float, ...]
    """Log-probability of each token given the prompt and the tokens before it, nats."""

    @property
    def total(self) -> float:
        """Log-probability of the whole text, nats."""
        return math.fsum(self.logprobs)


class ContinuationLogprobs(BaseModel):
    """The log-probabilities that were asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    continuations: tuple[Continuation, ...]
    """In the order of the texts."""
    read_by: ReadBy
    why: str
    """Why it was read that way."""
    computed_tokens: int
    """Tokens that the model had to read, those that it remembered left out; an estimate where a server remembers."""

    @property
    def mass(self) -> float | None:
        """Probability that the next token is any of the continuations; None unless each is one token of its own."""
        first = {continuation.tokens[0]: continuation.logprobs[0] for continuation in self.continuations}
        if len(first) < len(self.continuations) or any(len(c.tokens) > 1 for c in self.continuations):
            return None
        return math.fsum(math.exp(logprob) for logprob in first.values())
