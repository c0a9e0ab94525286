"""A server that refuses a question whenever it is asked: the question is named apart, and can be closed."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from wire_server import Wire, serving

import medexam
from medexam.experiments.report.run_tables import failure_tables
from medexam.experiments.score.refusals import TIMES, find_refused
from medexam.predictions import Reason, Status
from medexam.serve import TIMING

REFUSED = "calomel"
"""A word of one question of the sample."""


@dataclass
class RefusingWire(Wire):
    """Refuses one question with a status."""

    version: str | None = None
    tokenize: bool = False
    status: int = 400

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.status != 200 and REFUSED in str(body.get("messages")):
            return self.status, {"error": {"message": "the prompt is not what this server takes"}}
        return super().reply(path, body)


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`ask(wire)` -> the run of a few questions, among them the refused one."""
    monkeypatch.setattr(TIMING, "attempts", 1)
    spec = {
        "name": "refusing",
        "dataset": {"name": "headqa_sample", "language": "en", "limit": 30},
        "program": {"kind": "zero_shot", "max_tokens": 8},
    }

    def call(wire: Wire, **settings: Any) -> Any:
        spec["model"] = {"engine": "vllm", "endpoints": [wire.address]}
        (run,) = medexam.run(spec, runs_dir=tmp_path, progress=False, track=False, **settings)
        return run.stored

    return call


def test_a_question_that_is_refused_in_three_runs_is_named_and_can_be_closed(ask, caplog) -> None:
    with serving(RefusingWire()) as wire:
        for times in range(1, TIMES + 1):
            assert ask(wire, accept_refusals=times < TIMES).metrics.failed == 1
        stored = ask(wire)
        ((_, caption),) = failure_tables(stored)
        assert caption.startswith("1 of them failed in 3 runs in a row, such as: ")
        assert "the prompt is not what this server takes" in caption
        wire.requests.clear()
        with caplog.at_level(logging.WARNING):
            closed = ask(wire, accept_refusals=True)
        assert not [body for _, body in wire.requests if REFUSED in str(body)]
    assert (closed.complete, closed.metrics.n, closed.metrics.failed) == (True, 30, 0)
    (said,) = [one for one in closed.folder.read_predictions().values() if one.reason is Reason.REFUSED]
    assert (said.status, said.failure) == (Status.UNANSWERED, None)
    assert "1 questions failed in 3 runs in a row and count as refused from now on" in caplog.text
    assert not failure_tables(closed)


@pytest.mark.parametrize("status", [402, 429])
def test_what_says_nothing_of_a_question_closes_none(ask, status: int) -> None:
    with serving(RefusingWire(status=status)) as wire:
        for _ in range(TIMES):
            stored = ask(wire)
        assert stored.metrics.failed
        assert find_refused(stored.folder, frozenset(stored.record.questions)) == {}
        assert ask(wire, accept_refusals=True).metrics.failed == stored.metrics.failed


def test_a_question_that_was_answered_meanwhile_is_not_refused(ask) -> None:
    with serving(RefusingWire()) as wire:
        ask(wire), ask(wire)
        wire.status = 200
        stored = ask(wire)
    assert stored.complete
    assert find_refused(stored.folder, frozenset(stored.record.questions)) == {}
