"""What a plan says that its calls cost at a provider."""

from pathlib import Path

import pytest

from medexam.experiments import plan_experiment
from medexam.experiments.plan.price import describe_prices, estimate_price

PRICES = (1.0, 10.0)
"""Dollars of a million tokens."""


def most_reply_tokens(model: dict, tmp_path: Path) -> float:
    """The tokens of a reply that the price holds."""
    document = {
        "name": "priced",
        "dataset": {"name": "headqa_sample", "limit": 5},
        "model": {"engine": "litellm", "price": list(PRICES), **model},
        "program": {"kind": "zero_shot", "max_tokens": 100},
    }
    (planned,) = plan_experiment(document, {}, runs_dir=tmp_path).cells
    estimate = estimate_price(planned)
    assert estimate is not None
    assert estimate.prompt_usd > 0
    return estimate.most_reply_usd / 5 / PRICES[1] * 1e6


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ({"name": "openai/gpt-4o-mini"}, 100),
        ({"name": "openai/gpt-5", "temperature": 1.0}, 100 + 8192),
        ({"name": "openai/gpt-5", "temperature": 1.0, "max_tokens": 3000}, 100),
        ({"name": "openai/gpt-5", "endpoints": ["http://127.0.0.1:1/v1"]}, 100),
    ],
)
def test_the_longest_reply_holds_the_thinking(model: dict, tokens: int, tmp_path: Path) -> None:
    assert most_reply_tokens(model, tmp_path) == pytest.approx(tokens)


def test_less_than_a_cent_is_shown(tmp_path: Path) -> None:
    document = {
        "name": "priced",
        "dataset": {"name": "headqa_sample", "limit": 5},
        "model": {"engine": "litellm", "name": "openai/gpt-4o-mini", "price": list(PRICES)},
        "program": {"kind": "zero_shot", "max_tokens": 100},
    }
    cells = plan_experiment(document, {}, runs_dir=tmp_path).cells
    assert "at most $0.00" in (said := describe_prices(cells) or "")
    assert "$0.0000" not in said
