"""What a plan's pending calls will cost at a provider: prompts counted, replies at their longest.

It knows prompts and prices; nothing is asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.plan.document import prompt_of
from medexam.experiments.store.environment import list_prices
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.engines.provider_tables import read_tables
from medexam.serve.request_settings import thinking_room

_SAMPLE_SIZE = 40
"""Questions whose prompts are counted, spread over all that are pending."""


@dataclass(frozen=True)
class Estimate:
    """What a cell's pending calls will cost."""

    prompt_usd: float
    """US dollars of the prompts, by litellm's tokenizer, as if each call showed the first prompt."""
    most_reply_usd: float
    """US dollars of the replies if each is as long as it may be."""

    @property
    def most_usd(self) -> float:
        """US dollars in all, at most."""
        return self.prompt_usd + self.most_reply_usd


def estimate_price(planned: AnyCell) -> Estimate | None:
    """Estimate what asking a cell's pending questions costs; None where nothing is billed or no price is known."""
    if not planned.asks_model or not planned.pending or (prices := list_prices(planned.cell.model)) is None:
        return None
    count, model = get_litellm().token_counter, planned.cell.model.name
    step = max(len(planned.pending) // _SAMPLE_SIZE, 1)
    sizes = [count(model=model, messages=prompt_of(planned, question)) for question in planned.pending[::step]]
    prompt_tokens = sum(sizes) / len(sizes) * planned.calls
    return Estimate(
        prompt_usd=prompt_tokens * prices["prompt_usd"],
        most_reply_usd=planned.calls * _longest_reply(planned) * prices["completion_usd"],
    )


def _longest_reply(planned: AnyCell) -> int:
    """Count the tokens that a reply of the program may have, with those of its thinking."""
    model = planned.cell.model
    budget = planned.cell.program.budget(model.max_tokens)
    reply_tokens = max(budget.values()) if isinstance(budget, Mapping) else budget or 0
    if model.endpoints or not reply_tokens:
        return reply_tokens
    return reply_tokens + thinking_room(model, thinks=read_tables(str(model.name)).thinks)


def _dollars(usd: float) -> str:
    """Format dollars and cents, with more places of what is less than ten cents."""
    return f"${usd:.2f}" if usd >= 0.1 or not usd else f"${usd:.4f}"


def describe_prices(cells: Sequence[AnyCell]) -> str | None:
    """Describe in a line what the pending calls of a plan cost at most; None where nothing is billed or no price is
    known.
    """
    estimates = [(planned, estimate) for planned in cells if (estimate := estimate_price(planned)) is not None]
    if not estimates:
        return None
    prompts, maximum = (
        sum(estimate.prompt_usd for _, estimate in estimates),
        sum(estimate.most_usd for _, estimate in estimates),
    )
    batch_note = (
        " Batches are counted at their own price."
        if any(planned.cell.model.engine == "batch" for planned, _ in estimates)
        else ""
    )
    amounts = f"{_dollars(prompts)} for prompts, at most {_dollars(maximum)} with the longest replies"
    return f"Price, by litellm's list: {amounts}.{batch_note}"
