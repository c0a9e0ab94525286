"""Two real vLLM servers on this machine: one joins a run through the registry, the other is killed in it."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from medexam.experiments.planning import plan_experiment
from medexam.experiments.runner import run_plan
from medexam.serve import finding
from medexam.serve.keys import make_key, write_key
from medexam.serve.launching.processes import group_lives
from medexam.serve.launching.supervising import Fleet
from medexam.serve.launching.vllm_command import plan_servers
from medexam.serve.registry import Registered, Registry
from watching import Silent

PYTHON = os.environ.get("MEDEXAM_VLLM_PYTHON")
QUESTIONS = 480
LOAD_S = 900.0

pytestmark = [
    pytest.mark.vllm_env,
    pytest.mark.skipif(PYTHON is None, reason="MEDEXAM_VLLM_PYTHON names no Python with vLLM"),
    pytest.mark.skipif("MEDEXAM_DATA" not in os.environ, reason="MEDEXAM_DATA names no folder with HEAD-QA"),
]


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "key"
    write_key(path, make_key())
    return path


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Iterator[Fleet]:
    assert PYTHON is not None
    launches = plan_servers("smollm2-cpu", python=Path(PYTHON), replicas=2, max_context=2048)
    logs = tmp_path_factory.mktemp("logs")
    with Fleet(launches, logs=logs, key=key_file.read_text().strip(), key_file=key_file, restarts=0) as running:
        running.wait_healthy(LOAD_S)
        yield running


def prompts_answered(address: str) -> float:
    """What the server itself has counted."""
    lines = httpx.get(f"{address.removesuffix('/v1')}/metrics", trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("vllm:request_success_total"))


class Meddling(Silent):
    """Registers the second server after some answers, kills the first after more, and vouches for both meanwhile."""

    def __init__(self, registry: Registry, joining: Registered, victim: int) -> None:
        self.answers = 0
        self._registry = registry
        self._joining = joining
        self._victim = victim

    def answered(self, prediction) -> None:
        self.answers += 1
        if self.answers % 20 == 0:
            self._registry.beat(*(entry.address for entry in self._registry.read()))
        if self.answers == QUESTIONS // 6:
            self._registry.add(self._joining)
        if self.answers == QUESTIONS // 2:
            os.killpg(self._victim, signal.SIGKILL)


def test_a_run_outlives_one_of_its_servers(
    fleet: Fleet, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "LOOK_S", 0.5)
    registry = Registry(tmp_path / "servers.json")
    first, second = (
        Registered(address, "SmolLM2-135M-Instruct", socket.gethostname(), server.pid, key_file=key_file)
        for address, server in zip(fleet.addresses, fleet._servers, strict=True)
    )
    registry.add(first)
    document = {
        "name": "replicas",
        "dataset": {"name": "headqa_v1", "limit": QUESTIONS},
        "model": {"engine": "vllm", "endpoints": [f"registry:{registry.path}"], "profile": "smollm2-cpu"},
        "program": {"kind": "zero_shot", "answer_format": "guided"},
    }
    watcher = Meddling(registry, second, first.pid)
    (run,), stop = run_plan(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), watcher)
    assert stop is None
    assert run.status == "complete"
    assert run.metrics.n == QUESTIONS
    assert run.metrics.failed == run.metrics.unanswered == 0
    lines = (run.folder.path / "predictions.jsonl").read_text().splitlines()
    assert len(lines) == QUESTIONS
    assert set(run.environment["engine"]["endpoints"]) == set(fleet.addresses)
    assert prompts_answered(second.address) >= QUESTIONS / 3
    assert not group_lives(first.pid)
