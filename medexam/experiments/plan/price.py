"""What a plan's pending calls will cost at a provider: prompts counted, replies at their longest.

It knows prompts and prices; nothing is asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.plan.document import prompt_of
from medexam.experiments.store.environment import list_prices
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.engines.provider_tables import read_tables
from medexam.serve.request_settings import thinking_room
from medexam.specs import ModelSpec

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
    if not planned.asks_model or not planned.pending:
        return None
    further = planned.cell.asked_models
    estimates = []
    for name, model in ((None, planned.cell.model), *further.items()):
        if (prices := list_prices(model)) is not None:
            calls = planned.calls_of(name) if further else planned.calls
            sizes = _prompt_sizes(planned, model)
            prompt_usd = calls * sum(sizes) / len(sizes) * prices["prompt_usd"]
            estimates.append(Estimate(prompt_usd, calls * _longest_reply(planned, model) * prices["completion_usd"]))
    if not estimates:
        return None
    return Estimate(sum(one.prompt_usd for one in estimates), sum(one.most_reply_usd for one in estimates))


def find_most(planned: AnyCell) -> tuple[int, int, float]:
    """Find how many calls, tokens and dollars a pending question takes at most, as far as its first prompt tells."""
    further, step = planned.cell.asked_models, max(len(planned.pending) // _SAMPLE_SIZE, 1)
    sample = replace(planned, pending=planned.pending[::step])
    calls, tokens, usd = 0, 0, 0.0
    for name, model in ((None, planned.cell.model), *further.items()):
        ones = [replace(sample, pending=(question,)) for question in sample.pending]
        model_calls = max((one.calls_of(name) if further else one.calls for one in ones), default=0)
        prompt, reply = max(_prompt_sizes(sample, model), default=0), _longest_reply(sample, model)
        prices = list_prices(model) or {"prompt_usd": 0.0, "completion_usd": 0.0}
        calls, tokens = calls + model_calls, tokens + model_calls * (prompt + reply)
        usd += model_calls * (prompt * prices["prompt_usd"] + reply * prices["completion_usd"])
    return max(calls, 1), tokens, usd


def _prompt_sizes(planned: AnyCell, model: ModelSpec) -> list[int]:
    """Count the tokens of the first prompts of some pending questions."""
    step = max(len(planned.pending) // _SAMPLE_SIZE, 1)
    prompts = [prompt_of(planned, question) for question in planned.pending[::step]]
    return [get_litellm().token_counter(model=model.name or "", messages=prompt) for prompt in prompts]


def _longest_reply(planned: AnyCell, model: ModelSpec) -> int:
    """Count the tokens that a reply of the program may have, with those of its thinking."""
    budget = planned.cell.program.budget(model.max_tokens)
    reply_tokens = max(budget.values()) if isinstance(budget, Mapping) else budget or 0
    if model.endpoints or not model.is_billed or not reply_tokens:
        return reply_tokens
    return reply_tokens + thinking_room(model, thinks=read_tables(str(model.name)).thinks)


def _dollars(usd: float) -> str:
    """Format dollars and cents, with more places of what is less than ten cents."""
    return f"${usd:.2f}" if usd >= 0.1 or not usd else f"${usd:.4f}"


def describe_prices(cells: Sequence[AnyCell]) -> str | None:
    """Describe in a line what the pending calls of a plan cost at most; None where nothing is billed or no price is
    known.
    """
    estimates = _estimate_all(cells)
    if not estimates:
        return None
    prompts = sum(estimate.prompt_usd for estimate in estimates)
    by_spec = all(model.price is not None for planned in cells for model in planned.models)
    source = "the given price" if by_spec else "litellm's list"
    maximum = _dollars(sum(estimate.most_usd for estimate in estimates))
    return f"Price, by {source}: {_dollars(prompts)} for prompts, at most {maximum} with the longest replies."


def describe_excess(cells: Sequence[AnyCell], max_cost: float | None) -> str | None:
    """Describe in a line that a plan may cost more than its limit; None where it cannot, as far as is known."""
    maximum = 0.0 if max_cost is None else sum(estimate.most_usd for estimate in _estimate_all(cells))
    if max_cost is None or maximum <= max_cost:
        return None
    return f"the plan may cost {_dollars(maximum)}, and --max-cost is {_dollars(max_cost)}: it may stop before its end"


def _estimate_all(cells: Sequence[AnyCell]) -> list[Estimate]:
    return [estimate for planned in cells if (estimate := estimate_price(planned)) is not None]
