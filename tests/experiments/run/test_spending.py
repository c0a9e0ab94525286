"""What an invocation has spent, and which limit ends it."""

import pytest

from medexam.errors import SpecError
from medexam.experiments import Runner, Spending, Stop, plan_experiment
from medexam.experiments.run.spending import Limits
from medexam.experiments.store.environment import list_prices
from medexam.predictions import Failure, Prediction, Status
from medexam.specs import ModelSpec
from watching import Silent


def _prediction(*, failed: bool = False, prompt: int | None = 100, completion: int | None = 20) -> Prediction:
    failure = Failure(kind="LMTransportError", message="gone") if failed else None
    status = Status.FAILED if failed else Status.ANSWERED
    return Prediction(
        question="q",
        program="p",
        spec_digest="d",
        status=status,
        answer=None if failed else 1,
        failure=failure,
        prompt_tokens=prompt,
        completion_tokens=completion,
    )


@pytest.mark.parametrize(
    ("limits", "enough", "stop"),
    [
        (Limits(failures=2), 2, Stop.FAILURES),
        (Limits(tokens=361), 4, Stop.TOKENS),
        (Limits(cost=0.002), 2, Stop.COST),
        (Limits(minutes=1.5), 3, Stop.MINUTES),
    ],
)
def test_the_first_limit_that_is_reached_ends_it(limits, enough, stop) -> None:
    now = 0.0
    spent = Spending(limits, {"prompt_usd": 8e-6, "completion_usd": 1e-5}, clock=lambda: now)
    for done in range(1, enough + 1):
        assert spent.exhausted is None
        now += 30
        spent.add(_prediction(failed=stop is Stop.FAILURES))
        assert spent.questions == done
    assert spent.exhausted is stop


def test_without_limits_or_prices_nothing_ends_it() -> None:
    spent = Spending()
    for _ in range(100):
        spent.add(_prediction(failed=True, prompt=None, completion=None))
    assert (spent.exhausted, spent.tokens, spent.cost, spent.failed) == (None, 0, 0.0, 100)
    free = Spending(Limits(cost=0.01))
    free.add(_prediction(prompt=10**6))
    free.add(_prediction(prompt=None, completion=7))
    assert free.exhausted is None


@pytest.mark.parametrize("limits", [Limits(tokens=10**6), Limits(cost=5.0)])
@pytest.mark.parametrize("tokens", [{"prompt": None}, {"completion": None}])
def test_a_limit_that_cannot_be_counted_ends_it(limits, tokens) -> None:
    spent = Spending(limits, {"prompt_usd": 8e-6, "completion_usd": 1e-5})
    spent.add(_prediction())
    assert spent.exhausted is None
    spent.add(_prediction(failed=True, prompt=None, completion=None))
    assert spent.exhausted is None, "what failed has no reply"
    spent.add(_prediction(**tokens))
    assert spent.exhausted is Stop.UNCOUNTED


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ({"engine": "litellm", "name": "openai/no-such-model"}, False),
        ({"engine": "litellm", "name": "openai/no-such-model", "price": [0.5, 2]}, True),
        ({"engine": "litellm", "name": "openai/gpt-4o-mini"}, True),
        ({"engine": "vllm", "name": "m", "endpoints": ["http://127.0.0.1:9/v1"]}, False),
        ({"engine": "embedded"}, True),
    ],
)
def test_a_limit_of_dollars_needs_a_price_before_anything_is_asked(model, known, spec, tmp_path, monkeypatch) -> None:
    plan = plan_experiment({**spec, "model": model}, {}, runs_dir=tmp_path / "runs")
    runner = Runner(plan, Silent(), limits=Limits(cost=1.0))
    monkeypatch.setattr(runner, "_run_cells", _nothing)
    if known:
        assert runner.run() == ([], None)
        return
    with pytest.raises(SpecError, match="--price IN,OUT"):
        runner.run()
    assert not list((tmp_path / "runs").glob("*/predictions.jsonl"))


async def _nothing() -> None:
    pass


def test_a_price_of_the_spec_stands_before_the_lists(tmp_path) -> None:
    model = ModelSpec(engine="litellm", name="openai/gpt-4o-mini", price=(0.5, 2))
    assert list_prices(model) == {"prompt_usd": 5e-7, "completion_usd": 2e-6}
