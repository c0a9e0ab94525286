"""What a run took, from counts, times and prices that are easy to divide."""

import pytest

from medexam.experiments.report.run_tables import cost_tables
from medexam.experiments.store.costs import Cost, compute_costs
from medexam.experiments.store.environment import Invocation, build_environment, list_prices
from medexam.serve.pool.energy import EnergyCount
from medexam.specs import ModelSpec
from terminal import draw

ZERO_SHOT = {"kind": "zero_shot"}
EMBEDDED = {"engine": "embedded"}
ENVIRONMENT = {"asked_s": 12.5, "asked": 25, "engine": {"details": {"device": "cpu"}}}
"""Five of the twenty questions were asked twice."""


def test_costs_are_given_a_question_and_a_right_answer(make_run) -> None:
    costs = compute_costs(make_run(ZERO_SHOT, "rwww", model=EMBEDDED).metrics, ENVIRONMENT)
    assert costs.prompt_tokens == Cost(1800, 90.0, 360.0)
    assert costs.completion_tokens == Cost(100, 5.0, 20.0)
    assert costs.seconds == Cost(12.5, 0.5, 2.0)
    assert costs.questions_per_s == 2.0
    assert (costs.gpu_seconds, costs.usd) == (None, None)


def test_a_model_on_a_gpu_in_this_process_holds_it_while_it_is_asked(make_run) -> None:
    environment = {**ENVIRONMENT, "engine": {"details": {"device": "cuda:0"}}}
    costs = compute_costs(make_run(ZERO_SHOT, "r", model=EMBEDDED).metrics, environment)
    assert costs.gpu_seconds == costs.seconds


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        ({"engine": "embedded", "details": {"device": "cuda:0"}}, "0.00347 GPU-hours, counting one GPU. kWh are not"),
        (
            {"engine": "vllm", "details": {}},
            "GPU-hours and kWh are not known, because the server does not report its GPUs",
        ),
    ],
)
def test_gpu_hours_are_said_and_what_of_the_energy_is_not_known(make_run, engine, sentence) -> None:
    run = make_run(ZERO_SHOT, "rw", model=EMBEDDED)
    run.environment.update(ENVIRONMENT, engine=engine)
    assert sentence in " ".join(draw(*cost_tables(run)).split())


def test_the_energy_of_all_invocations_that_measured_it(make_run) -> None:
    run = make_run(ZERO_SHOT, "rwww", model=EMBEDDED)
    environment: dict = {}
    for questions, joules in ((10, 3600.0), (10, None), (5, 1800.0)):
        invocation = Invocation(seconds=5.0, questions=questions)
        if joules is not None:
            invocation.count_energy(EnergyCount(100.0, 2, "nvml"), EnergyCount(100.0 + joules, 2, "nvml"))
        environment = build_environment(ModelSpec(), None, environment, invocation)
    assert environment["energy"] == {"joules": 5400.0, "gpus": 2, "by": "nvml", "asked": 15}
    run.environment.update(environment)
    assert run.costs.kwh == Cost(0.0015, 0.0001, 0.0004)
    text = " ".join(draw(*cost_tables(run)).split())
    assert "kWh 0.0015 0.0001 0.0004" in text
    assert "those of 2 GPUs by NVML while 15 of 25 questions were asked" in text


def test_a_counter_that_began_anew_says_nothing() -> None:
    invocation = Invocation()
    invocation.count_energy(EnergyCount(100.0, 1, "nvml"), EnergyCount(3.0, 1, "nvml"))
    assert invocation.energy is None


def test_the_share_of_prompts_that_servers_remembered(make_run) -> None:
    run = make_run(ZERO_SHOT, "rw", model=EMBEDDED)
    run.environment.update(ENVIRONMENT, prefix_cache={"tokens": 400, "hits": 300})
    assert run.costs.prefix_hits == 0.75
    assert "75.0 % of the prompts' tokens in their prefix caches" in " ".join(draw(*cost_tables(run)).split())
    run.environment["prefix_cache"] = {"tokens": 0, "hits": 0}
    assert run.costs.prefix_hits is None


def test_a_price_gives_the_cost_of_a_right_answer(make_run) -> None:
    environment = {**ENVIRONMENT, "prices": {"prompt_usd": 1e-6, "completion_usd": 2e-6}}
    usd = compute_costs(make_run(ZERO_SHOT, "rw", model=EMBEDDED).metrics, environment).usd
    assert (usd.total, usd.per_question, usd.per_right) == pytest.approx((0.002, 0.0001, 0.0002))


def test_what_is_not_known_is_none(make_run) -> None:
    costs = compute_costs(make_run(ZERO_SHOT, "r").metrics, {})
    assert set(vars(costs).values()) == {None}
    assert compute_costs(make_run(ZERO_SHOT, "f").metrics, ENVIRONMENT).seconds is None
    assert compute_costs(make_run(ZERO_SHOT, "w", model=EMBEDDED).metrics, ENVIRONMENT).seconds.per_right is None


def test_a_price_is_a_hosted_models_own() -> None:
    prices = list_prices(ModelSpec(engine="litellm", name="openai/gpt-4o-mini"))
    assert prices is not None
    assert 0 < prices["prompt_usd"] < prices["completion_usd"] < 1e-4
    assert list_prices(ModelSpec(engine="litellm", name="openai/no-such-model")) is None
    assert list_prices(ModelSpec(engine="litellm", name="openai/gpt-4o-mini", endpoints=("http://me/v1",))) is None
    assert list_prices(ModelSpec()) is None


def test_the_cost_table_in_the_terminal_and_in_the_report(make_run) -> None:
    run = make_run(ZERO_SHOT, "rwww", model=EMBEDDED)
    run.environment.update(ENVIRONMENT)
    text = draw(*cost_tables(run))
    for row in ("Prompt tokens 1,800 90 360", "Completion tokens 100 5 20", "Seconds 12.5 0.5 2"):
        assert row in [" ".join(line.split()) for line in text.splitlines()]
    assert "2 questions a second" in " ".join(text.split())
    assert "dollars" not in text.lower()
    assert "| Prompt tokens | 1,800 | 90 | 360 |" in (run.folder.path / "report.md").read_text()


def test_a_control_and_a_run_of_which_nothing_is_known_have_no_cost_table(make_run) -> None:
    assert cost_tables(make_run({"kind": "longest"}, "r")) == []
    assert cost_tables(make_run(ZERO_SHOT, "r")) == []
