"""What a plan's pending calls will cost at a provider: prompts counted, replies at their longest.

It knows prompts and prices; nothing is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.plan.document import prompt_of
from medexam.experiments.store.environment import list_prices
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.serve.engines.provider_tables import read_tables
from medexam.serve.request_settings import thinking_room
from medexam.specs import ModelSpec

_SAMPLE_SIZE = 40
"""Questions whose prompts are counted, spread over all that are pending."""


def estimate_price(planned: AnyCell) -> tuple[float, float] | None:
    """Estimate the dollars of a cell's pending prompts, as if each call showed the first one, and of all at most.

    None where nothing is billed or no price is known.
    """
    if not planned.asks_model or not planned.pending:
        return None
    estimates, sample = [], _sample(planned)
    for name, model in _asked(planned):
        if (prices := list_prices(model)) is not None:
            calls, sizes = planned.calls_of(name), _prompt_sizes(sample, model)
            prompts_usd = calls * sum(sizes) / len(sizes) * prices["prompt_usd"]
            replies_usd = calls * _longest_reply(planned, model) * prices["completion_usd"]
            estimates.append((prompts_usd, prompts_usd + replies_usd))
    prompts, most = (sum(each) for each in zip(*estimates, strict=True)) if estimates else (0.0, 0.0)
    return (prompts, most) if estimates else None


def find_most(planned: AnyCell) -> tuple[int, int, float]:
    """Find how many calls, tokens and dollars a pending question takes at most, as far as its first prompt tells."""
    calls, tokens, usd, sample = 0, 0, 0.0, _sample(planned)
    for name, model in _asked(planned):
        ones = [replace(sample, pending=(question,)) for question in sample.pending]
        model_calls = max((one.calls_of(name) for one in ones), default=0)
        prompt, reply = max(_prompt_sizes(sample, model), default=0), _longest_reply(sample, model)
        prices = list_prices(model) or {"prompt_usd": 0.0, "completion_usd": 0.0}
        calls, tokens = calls + model_calls, tokens + model_calls * (prompt + reply)
        usd += model_calls * (prompt * prices["prompt_usd"] + reply * prices["completion_usd"])
    return max(calls, 1), tokens, usd


def _asked(planned: AnyCell) -> Iterator[tuple[str | None, ModelSpec]]:
    yield None, planned.cell.model
    yield from planned.cell.asked_models.items()


def _sample(planned: AnyCell) -> AnyCell:
    """Return the cell with some of its pending questions."""
    return replace(planned, pending=planned.pending[:: max(len(planned.pending) // _SAMPLE_SIZE, 1)])


def _prompt_sizes(planned: AnyCell, model: ModelSpec) -> list[int]:
    """Count the tokens of the first prompts of the pending questions."""
    prompts = [prompt_of(planned, question) for question in planned.pending]
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
    estimates = list(filter(None, map(estimate_price, cells)))
    if not estimates:
        return None
    prompts, most = (_dollars(sum(each)) for each in zip(*estimates, strict=True))
    by_spec = all(model.price is not None for planned in cells for model in planned.models)
    source = "the given price" if by_spec else "litellm's list"
    return f"Price, by {source}: {prompts} for prompts, at most {most} with the longest replies."


def describe_excess(cells: Sequence[AnyCell], max_cost: float | None) -> str | None:
    """Describe in a line that a plan may cost more than its limit; None where it cannot, as far as is known."""
    most = 0.0 if max_cost is None else sum(each[1] for each in map(estimate_price, cells) if each)
    if max_cost is None or most <= max_cost:
        return None
    return f"the plan may cost {_dollars(most)}, and --max-cost is {_dollars(max_cost)}: it may stop before its end"
