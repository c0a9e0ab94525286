"""What a run took: tokens, seconds and, where a price is known, money.

It knows counts and what `environment.json` says; nothing is measured here.
"""

from collections.abc import Mapping
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

    def cost(total: float | None, counted: int | None) -> Cost | None:
        """Return the cost of a sum over `counted` questions; None: over all that are scored."""
        if total is None or not metrics.n:
            return None
        scored_total = total * metrics.n / counted if counted else total
        return Cost(total, scored_total / metrics.n, scored_total / metrics.right if metrics.right else None)

    asked_s, asked = environment.get("asked_s") or 0.0, environment.get("asked") or 0
    seconds = cost(asked_s, asked) if asked_s > 0 and asked > 0 else None
    device = ((environment.get("engine") or {}).get("details") or {}).get("device")
    prompts, completions = metrics.prompt_tokens_counted, metrics.completion_tokens_counted
    counted = min((count for count in (prompts, completions) if count is not None), default=None)
    return Costs(
        prompt_tokens=cost(metrics.prompt_tokens, prompts),
        completion_tokens=cost(metrics.completion_tokens, completions),
        thinking_tokens=cost(metrics.thinking_tokens or None, completions),
        seconds=seconds,
        gpu_seconds=seconds if str(device).startswith("cuda") else None,
        usd=cost(_count_usd(metrics, environment), counted),
        questions_per_s=asked / asked_s if seconds else None,
        counted=counted,
    )


def _count_usd(metrics: Metrics, environment: Mapping[str, Any]) -> float | None:
    """Count the dollars of all models; None where one that took tokens has no price, and where none has one.

    What the provider counted is the cost.
    """
    if metrics.reported_usd is not None:
        return metrics.reported_usd
    prompt, completion = metrics.prompt_tokens, metrics.completion_tokens
    if prompt is None or completion is None:
        return None
    priced = []
    for model in (environment.get("models") or {}).values():
        priced.append((model["prices"], model["prompt_tokens"], model["completion_tokens"]))
        prompt, completion = prompt - model["prompt_tokens"], completion - model["completion_tokens"]
    priced.append((environment.get("prices"), max(0, prompt), max(0, completion)))
    usd = 0.0
    for prices, *tokens in priced:
        if not prices and sum(tokens):
            return None
        usd += tokens[0] * prices["prompt_usd"] + tokens[1] * prices["completion_usd"] if prices else 0.0
    return usd if any(prices for prices, *_ in priced) else None
