"""What one invocation has spent over all its cells, and what it may spend."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Any

from medexam.predictions import Prediction, Status
from medexam.predictions.calls import ModelCall
from medexam.specs.dataset import EXAMPLES


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

    A question is begun only where calls, tokens and dollars of all in flight fit, each counted at its most.
    """

    failures: int | None = None
    """Questions that failed."""
    tokens: int | None = None
    """Tokens of prompts and replies."""
    cost: float | None = None
    """US dollars by `model.price` or litellm's price list; a model that somebody may bill needs one of both."""
    minutes: float | None = None
    """Minutes since the run began; a wait that would end later ends the run."""
    calls: int | None = None
    """Replies of models; a question whose replies are not kept singly counts as one."""
    in_flight: int | None = None
    """Questions in flight at once."""

    @property
    def counts_questions(self) -> bool:
        """Whether it matters what one question costs at most."""
        return self.tokens is not None or self.cost is not None or self.calls is not None


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
    ended: Stop | None = None
    """What ended it from outside, whatever is counted."""
    questions: int = 0
    """Questions that are done, the failed ones included."""
    failed: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    most: tuple[float, float, float] = (1, 0, 0.0)
    """Calls, tokens and dollars that one question takes at most, by its first prompt and by those that are done."""
    uncounted: int = 0
    """Questions whose tokens the server does not report."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._begun = self.clock()
        self._is_first = False
        """Whether the cell's first question is asked alone, since it shows what one takes."""

    def begin_cell(self, planned: Any) -> None:
        """Count with the prices of a cell from now on, and with what its questions take at most."""
        from medexam.experiments.plan.price import find_most
        from medexam.experiments.store.environment import list_prices

        self.prices = list_prices(planned.cell.model) if planned.asks_model else None
        self.further_prices = {name: list_prices(model) for name, model in planned.cell.asked_models.items()}
        is_counted = self.limits.counts_questions and planned.asks_model and planned.cell.dataset.kind != EXAMPLES
        self.most = find_most(planned) if is_counted else (1, 0, 0.0)
        self._is_first = is_counted

    def add(self, prediction: Prediction, discarded: tuple[int, int] = (0, 0)) -> None:
        """Count one more question as done; `discarded` are tokens of prompts and replies that were thrown away."""
        self._is_first = False
        self.questions += 1
        self.failed += prediction.status is Status.FAILED
        counts = prediction.prompt_tokens, prediction.completion_tokens
        self.uncounted += prediction.last_call is not None and None in counts
        prompt, completion = (counts[0] or 0) + discarded[0], (counts[1] or 0) + discarded[1]
        tokens, calls, usd = prompt + completion, sum(call.has_reply for call in prediction.calls), 0.0
        for reply in prediction.calls if self.further_prices else ():
            if reply.asked is not None:
                one = (reply.prompt_tokens or 0, reply.completion_tokens or 0)
                earlier = self.further_tokens.get(reply.asked, (0, 0))
                self.further_tokens[reply.asked] = (earlier[0] + one[0], earlier[1] + one[1])
                usd += _usd(self.further_prices[reply.asked], *one)
                prompt, completion = prompt - one[0], completion - one[1]
        usd += _usd(self.prices, prompt, completion)
        self.calls, self.tokens, self.cost = self.calls + calls, self.tokens + tokens, self.cost + usd
        # A later step's prompt holds earlier replies, so a question may take more than its first prompt tells.
        self.most = (max(self.most[0], calls), max(self.most[1], tokens), max(self.most[2], usd))

    @property
    def minutes(self) -> float:
        """Minutes since it began."""
        return (self.clock() - self._begun) / 60

    def add_call(self, call: ModelCall) -> None:
        """Count a call that belongs to no question."""
        prompt, completion = call.prompt_tokens or 0, call.completion_tokens or 0
        self.calls += 1
        self.tokens += prompt + completion
        self.cost += _usd(self.prices, prompt, completion)

    @property
    def exhausted(self) -> Stop | None:
        """Which limit is reached, or too near for one more question; None if no one is."""
        limits = self.limits
        uncounted_limit = 1 if self._counts_tokens else None
        counters = (
            (Stop.FAILURES, self.failed, limits.failures, 0),
            *self._counters(),
            (Stop.MINUTES, self.minutes, limits.minutes, 0),
            (Stop.UNCOUNTED, self.uncounted, uncounted_limit, 0),
        )
        stops = (
            stop
            for stop, amount, limit, most in counters
            if limit is not None and (amount >= limit or amount + most > limit)
        )
        return self.ended or next(stops, None)

    @property
    def room(self) -> float:
        """How many questions may be in flight, if each takes as much as it may."""
        rooms = [
            (limit - amount) // most for _, amount, limit, most in self._counters() if limit is not None and most > 0
        ]
        return 1 if self._is_first else min([self.limits.in_flight or inf, *rooms])

    def outlasts(self, wait_s: float) -> bool:
        """Return whether a wait would end behind the limit of time; then nothing more is begun."""
        if self.limits.minutes is None or self.minutes + wait_s / 60 <= self.limits.minutes:
            return False
        self.ended = self.ended or Stop.MINUTES
        return True

    def share(self, parts: int) -> Limits:
        """Return what each of `parts` processes may spend of what is left, so that all together keep the limits."""
        limits = self.limits
        return Limits(
            tokens=None if limits.tokens is None else (limits.tokens - self.tokens) // parts,
            cost=None if limits.cost is None else (limits.cost - self.cost) / parts,
            minutes=None if limits.minutes is None else limits.minutes - self.minutes,
            calls=None if limits.calls is None else (limits.calls - self.calls) // parts,
            in_flight=None if limits.in_flight is None else max(1, limits.in_flight // parts),
        )

    def describe(self) -> str:
        """Describe what was spent, in a few words."""
        dollars = f", ${self.cost:.4f}" if self.cost else ""
        return f"{self.calls:,} calls, {self.tokens:,} tokens{dollars}, {self.minutes:.1f} minutes"

    def _counters(self) -> Iterator[tuple[Stop, float, float | None, float]]:
        yield Stop.CALLS, self.calls, self.limits.calls, self.most[0]
        yield Stop.TOKENS, self.tokens, self.limits.tokens, self.most[1]
        yield Stop.COST, self.cost, self.limits.cost, self.most[2]

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
