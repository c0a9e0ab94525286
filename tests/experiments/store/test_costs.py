"""What a run took, from counts, times and prices that are easy to divide."""

import pytest

import medexam

ZERO_SHOT = {"kind": "zero_shot"}
EMBEDDED = {"engine": "embedded"}
ENVIRONMENT = {"asked_s": 12.5, "asked": 25}
"""Five of the twenty questions were asked twice."""


@pytest.fixture
def run_with(make_run):
    """`run_with("rwww", asked_s=1.0)` -> a run of twenty questions that took this, one answer in four right."""

    def make(outcomes, *, model=EMBEDDED, extra=None, **environment):
        run = make_run(ZERO_SHOT, outcomes, model=model, extra=extra)
        run.folder.write_json("environment.json", run.environment | environment)
        return medexam.load_run(run.folder.path)

    return make


def test_costs_are_given_a_question_and_a_right_answer(run_with) -> None:
    run = run_with("rwww", **ENVIRONMENT)
    costs = run.stored.costs
    assert tuple(costs["prompt_tokens"].values()) == (1800, 90.0, 360.0)
    assert tuple(costs["completion_tokens"].values()) == (100, 5.0, 20.0)
    assert tuple(costs["seconds"].values()) == (12.5, 0.5, 2.0)
    assert costs["usd"] is None
    report = medexam.report(run).markdown()
    for row in ("| Prompt tokens | 1,800 | 90 | 360 |", "| Completion tokens | 100 | 5 | 20 |"):
        assert row in report
    assert "| Seconds | 12.5 | 0.5 | 2 |" in report


def test_the_dollars_of_calls_give_the_cost_of_a_right_answer(run_with) -> None:
    run = run_with("rw", extra=lambda _: {"cost_usd": 1e-4})
    assert tuple(run.stored.costs["usd"].values()) == pytest.approx((0.002, 0.0001, 0.0002))


def test_what_is_not_known_is_none(run_with) -> None:
    assert set(run_with("r", model=None).stored.costs.values()) == {None}
    assert run_with("f", model=None, **ENVIRONMENT).stored.costs["seconds"] is None
    assert run_with("w", **ENVIRONMENT).stored.costs["seconds"]["per_right"] is None
    assert "Prompt tokens" not in medexam.report(run_with("r", model=None)).markdown()
