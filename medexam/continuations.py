"""How likely a model finds each of several texts as what follows a prompt: what is asked, and what comes back.

Programs ask and engines answer in these words; neither knows the other.
"""

import math
from typing import Literal

from pydantic import Field

from medexam.frozen_model import FrozenModel

CONTINUATIONS = "continuations"
"""Key of `Request.config.extensions` that holds a `ContinuationRequest`, and of `Response.provider_data` that holds
the `ContinuationLogprobs` which answers it."""

ReadBy = Literal["echo", "trie", "label"]
"""`echo`: the prompt once for each continuation, every token's probability returned. `trie`: the prompt once, then one
step at each place where continuations have a further token. `label`: the prompt once, for single tokens."""


class ContinuationRequest(FrozenModel):
    """Asks for the log-probabilities of `texts` instead of a reply."""

    texts: tuple[str, ...] = Field(min_length=1)
    """A leading space is part of the text."""
    read_by: ReadBy | Literal["auto"] = "auto"
    """`auto` takes the method with the fewest tokens to compute, of those that the model's server supports."""
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
