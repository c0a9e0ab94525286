"""Tokens that a server does not report are unknown: never zero, shown as such, and no limit is counted by them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from wire_server import Wire, serving

from medexam.experiments import Runner, Stop, plan_experiment
from medexam.experiments.report.run_tables import cost_tables
from medexam.experiments.run.spending import NO_LIMITS, Limits
from medexam.serve.engines.token_usage import read_usage
from watching import Silent

ZEROS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
NULLS = dict.fromkeys(ZEROS)


@dataclass
class Uncounted(Wire):
    """Says `usage` of each reply whatever it has cost; None leaves it out."""

    usage: dict[str, Any] | None = None

    def _chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, reply = super()._chat(body)
        reply.pop("usage", None)
        return status, reply if self.usage is None else {**reply, "usage": self.usage}


def _run(
    engine: str, wire: Uncounted, tmp_path: Path, programs: Sequence[str] = ("zero_shot",), limits: Limits = NO_LIMITS
) -> Any:
    name = {"name": "openai/tiny"} if engine == "litellm" else {}
    with serving(wire):
        document = {
            "name": "uncounted",
            "dataset": {"name": "headqa_sample", "limit": 6},
            "model": {"engine": engine, **name, "endpoints": [wire.address]},
            "matrix": {"program": list(programs)},
        }
        plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
        return Runner(plan, Silent(), limits=limits).run()


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


@pytest.mark.parametrize("usage", [None, ZEROS, NULLS], ids=["none", "zeros", "nulls"])
@pytest.mark.parametrize("engine", ["vllm", "litellm"])
def test_what_is_not_reported_is_unknown(engine, usage, tmp_path) -> None:
    (run,), _ = _run(engine, Uncounted(usage=usage), tmp_path)
    assert run.status == "complete"
    for prediction in run.folder.read_predictions().values():
        assert (prediction.prompt_tokens, prediction.completion_tokens) == (None, None)
    assert (run.metrics.prompt_tokens, run.metrics.completion_tokens) == (None, None)
    ((table, caption),) = cost_tables(run)
    assert ("Prompt tokens", "-", "-", "-") in table.rows
    assert "reported no tokens" in caption


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
def test_a_limit_of_tokens_stops_where_they_are_unknown(engine, tmp_path) -> None:
    runs, stop = _run(engine, Uncounted(), tmp_path, ("zero_shot", "few_shot"), Limits(tokens=10**6))
    assert (len(runs), stop) == (1, Stop.UNCOUNTED), "the second program is not begun"


@pytest.mark.parametrize(
    ("usage", "wrote", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}, True, (9, 2)),
        ({"prompt_tokens": 9, "total_tokens": 11}, True, (9, 2)),
        ({"completion_tokens": 2, "total_tokens": 11}, True, (9, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 0}, False, (9, 0)),
        ({"prompt_tokens": 9, "completion_tokens": 0}, True, (9, None)),
        ({"total_tokens": 11}, True, (None, None)),
        ({"prompt_tokens": -1, "completion_tokens": 10**12}, True, (None, None)),
        ({"prompt_tokens": "9", "completion_tokens": 2.5}, True, (None, None)),
        ("many", True, (None, None)),
    ],
)
def test_counts_are_read_where_they_can_be_true(usage, wrote, expected) -> None:
    counts = read_usage(usage, wrote=wrote)
    assert (counts.get("prompt_tokens"), counts.get("completion_tokens")) == expected
