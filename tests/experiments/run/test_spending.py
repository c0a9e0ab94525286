"""What an invocation has spent, and which limit ends it."""

import pytest

from medexam.experiments.run.spending import Limits, Spending, Stop
from medexam.predictions import Failure, Prediction, Status


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
        assert spent.asked == done
    assert spent.exhausted is stop


def test_without_limits_or_prices_nothing_ends_it() -> None:
    spent = Spending()
    for _ in range(100):
        spent.add(_prediction(failed=True, prompt=None, completion=None))
    assert (spent.exhausted, spent.tokens, spent.cost, spent.failed) == (None, 0, 0.0, 100)
    free = Spending(Limits(cost=0.01))
    free.add(_prediction(prompt=10**6))
    assert free.exhausted is None
