"""Tokens that a server does not report are unknown: never zero, shown as such, and no limit is counted by them."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from wire_server import Wire, serving

import medexam
from medexam.predictions import ModelCall, Prediction, Status
from table_cases import read_table

ZEROS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
KNOWN = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


@dataclass
class Uncounted(Wire):
    """Says `usage` of each reply whatever it has cost; None leaves it out."""

    usage: Any = None

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, reply = super().reply(path, body)
        if path.endswith("/completions") and status == 200:
            del reply["usage"]
            reply |= {} if self.usage is None else {"usage": self.usage}
        return status, reply


@pytest.fixture
def serve(ask, spec, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    def run(engine, usage, **settings):
        name = {"name": "openai/tiny"} if engine == "litellm" else {}
        with serving(Uncounted(usage=usage)) as wire:
            model = {"engine": engine, **name, "endpoints": [wire.address]}
            return ask(spec | {"model": model, "dataset": {"name": "headqa_sample", "limit": 3}}, **settings)

    return run


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
@pytest.mark.parametrize(*read_table("reported_counts"))
def test_counts_are_kept_where_they_can_be_true(serve, engine, usage, expected) -> None:
    (run,) = serve(engine, usage)
    assert run.complete
    counted = {(one.prompt_tokens, one.completion_tokens) for one in run.predictions.values()}
    assert counted == {tuple(expected)}
    totals = tuple(None if count is None else 3 * count for count in expected)
    assert (run.metrics.prompt_tokens, run.metrics.completion_tokens) == totals
    assert ("reported no tokens" in (run.folder / "report.md").read_text()) == (None in expected)


def test_a_limit_of_tokens_stops_where_they_are_unknown(serve) -> None:
    limits = medexam.Limits(tokens=10**6)
    runs = serve("vllm", None, program=["zero_shot", "few_shot"], limits=limits)
    assert (len(runs), runs.stop) == (1, "uncounted"), "the second program is not begun"


def test_a_price_of_the_spec_counts_before_the_lists(serve) -> None:
    (run,) = serve("litellm", KNOWN, model={"price": [0.5, 2]})
    assert json.loads((run.folder / "environment.json").read_text())["prices"] == pytest.approx(
        {"prompt_usd": 5e-7, "completion_usd": 2e-6}
    )
    assert run.stored.costs["usd"]["total"] == pytest.approx(3 * (9 * 5e-7 + 2 * 2e-6))


def test_tokens_of_a_question_are_unknown_if_one_of_its_replies_does_not_tell() -> None:
    told = ModelCall(text="a", finish_reason="stop", prompt_tokens=9, completion_tokens=2)
    untold, lost = ModelCall(text="a", finish_reason="stop", prompt_tokens=9), ModelCall(fault="gone")
    whole, part = (
        Prediction(question="q", program="p", spec_digest="d", status=Status.ANSWERED, answer=1, calls=calls)
        for calls in ((told, lost, told), (told, untold, told))
    )
    assert (whole.prompt_tokens, whole.completion_tokens) == (18, 4)
    assert (part.prompt_tokens, part.completion_tokens) == (27, None)
