"""Two real vLLM servers on this machine: one joins a run through the registry, the other is killed in it."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from medexam.companions.serving.launch.fleet import ClientAccess, Fleet
from medexam.companions.serving.launch.processes import group_lives
from medexam.companions.serving.launch.settings import ServerSettings
from medexam.companions.serving.launch.vllm_command import plan_servers
from medexam.experiments import Runner, plan_experiment
from medexam.serve import TIMING, RegisteredServer, Registry, make_key, write_key
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
    launches = plan_servers("smollm2-cpu", ServerSettings(python=Path(PYTHON), replicas=2, max_context=2048))
    logs = tmp_path_factory.mktemp("logs")
    with Fleet(launches, logs=logs, access=ClientAccess(key_file.read_text().strip(), key_file), restarts=0) as running:
        running.wait_healthy(LOAD_S)
        yield running


def prompts_answered(address: str) -> float:
    """What the server itself has counted."""
    lines = httpx.get(f"{address.removesuffix('/v1')}/metrics", trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("vllm:request_success_total"))


class Meddling(Silent):
    """Vouches for the first server, after some answers for the second too, and after more kills the first."""

    def __init__(self, registry: Registry, first: RegisteredServer, second: RegisteredServer) -> None:
        self.answers = 0
        self._registry = registry
        self._second = second
        self._victim = first.pid
        self._known = [first]
        self.vouch()

    def vouch(self) -> None:
        """Say of the servers that they run."""
        self._registry.add(*(replace(entry, seen_at=time.time()) for entry in self._known))

    def answered(self, prediction) -> None:
        self.answers += 1
        if self.answers == QUESTIONS // 6:
            self._known.append(self._second)
        if self.answers == QUESTIONS // 2:
            del self._known[0]
            os.killpg(self._victim, signal.SIGKILL)


def test_a_run_outlives_one_of_its_servers(
    fleet: Fleet, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TIMING, "poll_s", 0.5)
    registry = Registry(tmp_path / "servers.json")
    first, second = (
        RegisteredServer(address, "SmolLM2-135M-Instruct", socket.gethostname(), server.pid, key_file=key_file)
        for address, server in zip(fleet.addresses, fleet._servers, strict=True)
    )
    document = {
        "name": "replicas",
        "dataset": {"name": "headqa_v1", "limit": QUESTIONS},
        "model": {"engine": "vllm", "endpoints": [f"registry:{registry.path}"], "profile": "smollm2-cpu"},
        "program": {"kind": "zero_shot", "answer_format": "guided"},
    }
    watcher, over = Meddling(registry, first, second), threading.Event()

    def vouch() -> None:
        while not over.wait(0.5):
            watcher.vouch()

    vouching = threading.Thread(target=vouch)
    vouching.start()
    try:
        (run,), stop = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), watcher).run()
    finally:
        over.set()
        vouching.join()
    assert stop is None
    assert run.status == "complete"
    assert run.metrics.n == QUESTIONS
    assert run.metrics.failed == run.metrics.unanswered == 0
    lines = (run.folder.path / "predictions.jsonl").read_text().splitlines()
    assert len(lines) == QUESTIONS
    assert set(run.environment["engine"]["endpoints"]) == set(fleet.addresses)
    assert prompts_answered(second.address) >= QUESTIONS / 3
    assert not group_lives(first.pid)
