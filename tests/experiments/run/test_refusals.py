"""A server that refuses a question whenever it is asked: the question is named apart, and can be closed."""

import logging
from dataclasses import dataclass
from typing import Any

import pytest
from wire_server import Wire, serving

from medexam.predictions import Reason, Status
from medexam.serve import TIMING

REFUSED = "calomel"
"""A word of one question of the sample."""


@dataclass
class RefusingWire(Wire):
    """Refuses one question with a status."""

    tokenize: bool = False
    version: str | None = None
    status: int = 400

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.status != 200 and REFUSED in str(body.get("messages")):
            return self.status, {"error": {"message": "the prompt is not what this server takes"}}
        return super().reply(path, body)


@pytest.fixture
def ask_wire(ask, monkeypatch):
    """The run of a few questions, among them the refused one."""
    monkeypatch.setattr(TIMING, "attempts", 1)
    spec = {
        "name": "refusing",
        "dataset": {"name": "headqa_sample", "limit": 30},
        "program": {"kind": "zero_shot", "max_tokens": 8},
    }

    def call(wire: Wire, **settings: Any) -> Any:
        return ask(spec | {"model": {"engine": "vllm", "endpoints": [wire.address]}}, **settings)[0]

    return call


def test_a_question_that_is_refused_in_three_runs_is_named_and_can_be_closed(ask_wire, caplog) -> None:
    with serving(RefusingWire()) as wire:
        for accepts in (True, True, False):
            assert ask_wire(wire, accept_refusals=accepts).metrics.failed == 1
        report = (ask_wire(wire).folder / "report.md").read_text()
        assert "1 of them failed in 3 runs in a row, such as: " in report
        assert "the prompt is not what this server takes" in report
        wire.requests.clear()
        with caplog.at_level(logging.WARNING):
            closed = ask_wire(wire, accept_refusals=True)
        assert not [body for _, body in wire.requests if REFUSED in str(body)]
    assert (closed.complete, closed.n, closed.metrics.failed) == (True, 30, 0)
    (said,) = [one for one in closed.predictions.values() if one.reason is Reason.REFUSED]
    assert (said.status, said.failure) == (Status.UNANSWERED, None)
    assert "1 questions failed in 3 runs in a row and count as refused from now on" in caplog.text


def test_what_says_nothing_of_a_question_closes_none(ask_wire) -> None:
    with serving(RefusingWire(status=429)) as wire:
        for _ in "123":
            run = ask_wire(wire)
        assert run.metrics.failed
        assert ask_wire(wire, accept_refusals=True).metrics.failed == run.metrics.failed


def test_refusals_that_do_not_follow_each_other_close_none(ask_wire) -> None:
    with serving(RefusingWire()) as wire:
        for status in (400, 400, 429, 400):
            wire.status = status
            ask_wire(wire)
        assert ask_wire(wire, accept_refusals=True).metrics.failed == 1
        wire.status = 200
        assert ask_wire(wire, accept_refusals=True).complete
