"""What a run took: tokens, seconds and, where a price is known, money.

It knows counts and what `environment.json` says; nothing is measured here.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from medexam.measures.results import Metrics

_USUALLY_NONE = ("thinking_tokens", "counted")


@dataclass(frozen=True)
class Cost:
    """One thing that was spent."""

    total: float
    per_question: float
    per_right: float | None
    """None where no answer is right, and where answers are more or less right."""


@dataclass(frozen=True)
class Costs:
    """What is known of a run's costs; None where it is not.

    Tokens and money are those of the scored questions whose tokens the server reported. Time is that of all
    invocations, retries and failures included; a question's is the mean of all that were asked, a right answer's that
    over the accuracy.
    """

    prompt_tokens: Cost | None
    completion_tokens: Cost | None
    thinking_tokens: Cost | None
    """Those of the completions' that are thinking; None where none is reported."""
    seconds: Cost | None
    """While questions were asked; without starting the engine and without scoring."""
    gpu_seconds: Cost | None
    """None where the model runs on the CPU, or behind a server that does not tell on how many GPUs."""
    usd: Cost | None
    """US dollars by the price list of the day; None without a price, and where no tokens are known."""
    questions_per_s: float | None
    """Failed ones included."""
    counted: int | None
    """Questions that tokens and dollars count; None unless the server reported no tokens of other replies."""

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON-ready dictionary; without thinking tokens and `counted` if they are None."""
        return {name: value for name, value in asdict(self).items() if name not in _USUALLY_NONE or value is not None}


def compute_costs(metrics: Metrics, environment: Mapping[str, Any]) -> Costs:
    """Compute the costs of a run with these metrics under this `environment.json`; `environment` may be empty."""
    engine = environment.get("engine") or {}
    asked_s, question_count = environment.get("asked_s") or 0.0, environment.get("asked") or 0
    is_timed = asked_s > 0 and question_count > 0 and metrics.n > 0
    seconds = _cost(asked_s, asked_s / question_count * metrics.n, metrics) if is_timed else None
    on_gpu = str((engine.get("details") or {}).get("device", "")).startswith("cuda")
    return Costs(
        prompt_tokens=_tokens(metrics.prompt_tokens, metrics.prompt_tokens_counted, metrics),
        completion_tokens=_tokens(metrics.completion_tokens, metrics.completion_tokens_counted, metrics),
        thinking_tokens=_tokens(metrics.thinking_tokens or None, metrics.completion_tokens_counted, metrics),
        seconds=seconds,
        gpu_seconds=seconds if on_gpu else None,
        usd=_money(metrics, environment.get("prices"), (environment.get("models") or {}).values()),
        questions_per_s=question_count / asked_s if is_timed else None,
        counted=_fewest_counted(metrics),
    )


def _tokens(total: int | None, question_count: int | None, metrics: Metrics) -> Cost | None:
    """Return the cost of a sum over `question_count` questions; None: over all."""
    if total is None or not metrics.n:
        return None
    return _cost(total, total * metrics.n / question_count if question_count else total, metrics)


def _fewest_counted(metrics: Metrics) -> int | None:
    """Count the questions in the sums of tokens, where these do not count all with a reply; else None."""
    counts = (metrics.prompt_tokens_counted, metrics.completion_tokens_counted)
    return min((count for count in counts if count is not None), default=None)


def _money(metrics: Metrics, prices: Mapping[str, float] | None, further: Collection[Mapping[str, Any]]) -> Cost | None:
    """Compute the dollars; `further` are further models with their tokens and prices.

    None where a model that took tokens has no price.
    """
    if metrics.prompt_tokens is None or metrics.completion_tokens is None or not metrics.n:
        return None
    prompt_tokens, completion_tokens = metrics.prompt_tokens, metrics.completion_tokens
    total = 0.0
    for model in further:
        tokens = (model["prompt_tokens"], model["completion_tokens"])
        if model["prices"] is None and any(tokens):
            return None
        prompt_tokens, completion_tokens = prompt_tokens - tokens[0], completion_tokens - tokens[1]
        total += _usd(model["prices"], *tokens)
    if not prices and (not further or prompt_tokens > 0 or completion_tokens > 0):
        return None
    total += _usd(prices, max(0, prompt_tokens), max(0, completion_tokens))
    question_count = _fewest_counted(metrics)
    return _cost(total, total * metrics.n / question_count if question_count else total, metrics)


def _usd(prices: Mapping[str, float] | None, prompt_tokens: int, completion_tokens: int) -> float:
    return prompt_tokens * prices["prompt_usd"] + completion_tokens * prices["completion_usd"] if prices else 0.0


def _cost(total: float, scored_total: float, metrics: Metrics) -> Cost:
    """Return a cost, `scored_total` being the part of `total` that the scored questions took."""
    return Cost(total, scored_total / metrics.n, scored_total / metrics.right if metrics.right else None)
