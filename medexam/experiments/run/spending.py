"""What one invocation has spent over all its cells, and what it may spend."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import Any

from medexam.predictions import Prediction, Status
from medexam.predictions.prediction import ModelCall
from medexam.specs.dataset import EXAMPLES


class Stop(StrEnum):
    """Why a run ended before everything was asked; a limit's value is its field in `Limits`."""

    INTERRUPTED = "interrupted"
    """Ctrl-C."""
    FAILURES = "failures"
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


NO_LIMITS = Limits()
_COUNTED = ("calls", "tokens", "cost")


@dataclass
class Spending:
    """Counts what is spent; it belongs to the loop that it is used on."""

    limits: Limits = NO_LIMITS
    prices: Mapping[str | None, Mapping[str, float] | None] = field(default_factory=dict)
    """Dollars a token, as `prompt_usd` and `completion_usd`: of the cell's further models by name, of its own as None.
    None without a price."""
    ended: Stop | None = None
    """What ended it from outside, whatever is counted."""
    questions: int = 0
    """Questions that are done, the failed ones included."""
    failures: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    most: dict[str, float] = field(default_factory=dict)
    """Calls, tokens and dollars that one question takes at most, by its first prompt and by those that are done."""
    uncounted: bool = False
    """Whether the server did not report the tokens of a question."""
    begun: float = field(default_factory=time.monotonic)
    _is_first: bool = False
    """Whether the cell's first question is asked alone, since it shows what one takes."""

    def begin_cell(self, planned: Any) -> None:
        """Count with the prices of a cell from now on, and with what its questions take at most."""
        from medexam.experiments.plan.plans import find_most
        from medexam.experiments.store.environment import list_prices

        self.prices = {name: list_prices(model) for name, model in planned.models.items()}
        is_limited = any(getattr(self.limits, name) is not None for name in _COUNTED)
        self._is_first = is_limited and planned.asks_model and planned.cell.dataset.kind != EXAMPLES
        self.most = dict(zip(_COUNTED, find_most(planned), strict=True)) if self._is_first else {}

    def add(self, prediction: Prediction, discarded: Sequence[int] = (0, 0)) -> Prediction:
        """Count one more question as done, and return its prediction with the dollars of each call by the price.

        `discarded` are tokens of prompts and replies that were thrown away.
        """
        before, self._is_first = (self.calls, self.tokens, self.cost), False
        self.questions += 1
        self.failures += prediction.status is Status.FAILED
        calls = prediction.calls
        if any(discarded):
            calls = (*calls, ModelCall(prompt_tokens=discarded[0], completion_tokens=discarded[1]))
        if any(self.prices.values()):
            calls = tuple(map(self._price, calls))
            prediction = prediction.model_copy(update={"calls": calls[: len(prediction.calls)]})
        for call in calls:
            if call.has_reply:
                self.calls += 1
                self.uncounted |= None in (call.prompt_tokens, call.completion_tokens)
            self.tokens += (call.prompt_tokens or 0) + (call.completion_tokens or 0)
            self.cost += call.cost_usd or 0.0
        # A later step's prompt holds earlier replies, so a question may take more than its first prompt tells.
        for name, amount in zip(_COUNTED, before, strict=True):
            self.most[name] = max(self.most.get(name, 0), getattr(self, name) - amount)
        return prediction

    def _price(self, call: ModelCall) -> ModelCall:
        prices, prompt, completion = self.prices.get(call.asked), call.prompt_tokens, call.completion_tokens
        if call.cost_usd is not None or prices is None or prompt is None or completion is None:
            return call
        return replace(call, cost_usd=prompt * prices["prompt_usd"] + completion * prices["completion_usd"])

    @property
    def minutes(self) -> float:
        """Minutes since it began."""
        return (time.monotonic() - self.begun) / 60

    @property
    def exhausted(self) -> Stop | None:
        """Which limit is reached, or too near for one more question; None if no one is."""
        if self.ended or self.limits is NO_LIMITS:
            return self.ended
        for name in ("failures", *_COUNTED, "minutes"):
            amount, limit = getattr(self, name), getattr(self.limits, name)
            if limit is not None and (amount >= limit or amount + self.most.get(name, 0) > limit):
                return Stop(name)
        counts_tokens = self.limits.tokens is not None or (self.limits.cost is not None and any(self.prices.values()))
        return Stop.UNCOUNTED if self.uncounted and counts_tokens else None

    @property
    def room(self) -> float:
        """How many questions may be in flight, if each takes as much as it may."""
        rooms = [
            (limit - getattr(self, name)) // self.most[name]
            for name in _COUNTED
            if (limit := getattr(self.limits, name)) is not None and self.most.get(name)
        ]
        return 1 if self._is_first else min([self.limits.in_flight or inf, *rooms])

    def outlasts(self, wait_s: float) -> bool:
        """Return whether a wait would end behind the limit of time; then nothing more is begun."""
        if self.limits.minutes is None or self.minutes + wait_s / 60 <= self.limits.minutes:
            return False
        self.ended = self.ended or Stop.MINUTES
        return True

    def share(self, parts: int) -> dict[str, float]:
        """Return the limits of each of `parts` processes, so that all together keep those of what is not spent yet."""
        limits = {name: limit for name, limit in vars(self.limits).items() if limit is not None and name != "failures"}
        amounts = {name: limit - getattr(self, name, 0) for name, limit in limits.items()}
        return {
            name: amount if name == "minutes" else amount / parts if name == "cost" else max(1, amount // parts)
            for name, amount in amounts.items()
        }

    def describe(self) -> str:
        """Describe what was spent, in a few words."""
        dollars = f", ${self.cost:.4f}" if self.cost else ""
        return f"{self.calls:,} calls, {self.tokens:,} tokens{dollars}, {self.minutes:.1f} minutes"
