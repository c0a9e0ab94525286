"""What one invocation has spent over all its cells, and what it may spend."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from medexam.predictions import Prediction, Status
from medexam.predictions.calls import ModelCall


class Stop(StrEnum):
    """Why a run ended before everything was asked."""

    INTERRUPTED = "interrupted"
    """Ctrl-C."""
    FAILURES = "failures"
    """As many questions failed as were allowed to."""
    CALLS = "calls"
    TOKENS = "tokens"
    COST = "cost"
    MINUTES = "minutes"
    UNCOUNTED = "uncounted"
    """A limit counts tokens, and the server does not report those of a reply."""


@dataclass(frozen=True)
class Limits:
    """What may be spent; None sets no limit.

    No question is begun once one is reached. Those in flight are finished, so a little more may be spent.
    """

    failures: int | None = None
    """Questions that failed."""
    tokens: int | None = None
    """Tokens of prompts and replies."""
    cost: float | None = None
    """US dollars by `model.price` or litellm's price list; a model that somebody may bill needs one of both."""
    minutes: float | None = None
    """Minutes since the run began."""
    calls: int | None = None
    """Replies of models; a question whose replies are not kept singly counts as one."""


NO_LIMITS = Limits()


@dataclass
class Spending:
    """Counts what is spent; it belongs to the loop that it is used on."""

    limits: Limits = NO_LIMITS
    prices: Mapping[str, float] | None = None
    """Dollars a token of the model that is asked now, as `prompt_usd` and `completion_usd`; None without a price."""
    further_prices: Mapping[str, Mapping[str, float] | None] = field(default_factory=dict)
    """The same of each further model that the program asks, by name."""
    further_tokens: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name of each further model -> tokens of its prompts and of its replies; the reader gives the table."""
    questions: int = 0
    """Questions that are done, the failed ones included."""
    failed: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    uncounted: int = 0
    """Questions whose tokens the server does not report."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def add(self, prediction: Prediction) -> None:
        """Count one more question as done."""
        self.questions += 1
        self.failed += prediction.status is Status.FAILED
        counts = prediction.prompt_tokens, prediction.completion_tokens
        self.uncounted += prediction.last_call is not None and None in counts
        prompt, completion = counts[0] or 0, counts[1] or 0
        self.tokens += prompt + completion
        self.calls += sum(call.has_reply for call in prediction.calls)
        for reply in prediction.calls if self.further_prices else ():
            if reply.asked is not None:
                tokens = (reply.prompt_tokens or 0, reply.completion_tokens or 0)
                earlier = self.further_tokens.get(reply.asked, (0, 0))
                self.further_tokens[reply.asked] = (earlier[0] + tokens[0], earlier[1] + tokens[1])
                self.cost += _usd(self.further_prices[reply.asked], *tokens)
                prompt, completion = prompt - tokens[0], completion - tokens[1]
        self.cost += _usd(self.prices, prompt, completion)

    def add_call(self, call: ModelCall) -> None:
        """Count a call that belongs to no question."""
        prompt, completion = call.prompt_tokens or 0, call.completion_tokens or 0
        self.calls += 1
        self.tokens += prompt + completion
        self.cost += _usd(self.prices, prompt, completion)

    @property
    def exhausted(self) -> Stop | None:
        """Which limit is reached; None if no one is."""
        limits = self.limits
        minutes = (self.clock() - self._begun) / 60
        counters = (
            (Stop.FAILURES, self.failed, limits.failures),
            (Stop.CALLS, self.calls, limits.calls),
            (Stop.TOKENS, self.tokens, limits.tokens),
            (Stop.COST, self.cost, limits.cost),
            (Stop.MINUTES, minutes, limits.minutes),
            (Stop.UNCOUNTED, self.uncounted, 1 if self._counts_tokens else None),
        )
        return next((stop for stop, amount, limit in counters if limit is not None and amount >= limit), None)

    @property
    def _counts_tokens(self) -> bool:
        """Whether a limit depends on what the server reports."""
        priced = self.prices is not None or any(self.further_prices.values())
        return self.limits.tokens is not None or (self.limits.cost is not None and priced)


def _usd(prices: Mapping[str, float] | None, prompt_tokens: int, completion_tokens: int) -> float:
    """Return the dollars of tokens; 0 without a price."""
    return (
        0.0 if prices is None else prompt_tokens * prices["prompt_usd"] + completion_tokens * prices["completion_usd"]
    )
