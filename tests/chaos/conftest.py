"""Runs over servers that tests break."""

from pathlib import Path
from typing import Any

import pytest

from medexam.experiments import Runner, plan_experiment
from medexam.serve import TIMING
from watching import Silent


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are asked again almost at once, and servers rest briefly."""
    monkeypatch.setattr(TIMING, "first_wait_s", 0.01)
    monkeypatch.setattr(TIMING, "cooldown_s", 0.2)
    monkeypatch.setattr(TIMING, "poll_s", 0.2)


@pytest.fixture
def run(tmp_path: Path):
    """`run(endpoints, dataset, name, observer=, **program)` -> the stored run; `name` is its own folder of runs."""

    def start(endpoints, dataset, name, observer=None, timeout_s=5.0, **program) -> Any:
        document = {
            "name": "chaos",
            "dataset": dataset,
            "model": {"engine": "vllm", "endpoints": endpoints, "timeout_s": timeout_s},
            "program": {"kind": "zero_shot", **program},
        }
        plan = plan_experiment(document, {}, runs_dir=tmp_path / name)
        (stored,), stop = Runner(plan, observer or Silent()).run()
        assert stop is None
        return stored

    return start
