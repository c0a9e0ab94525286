"""A run whose servers' job is pending: it waits and says so, Ctrl-C loses nothing, and a late server is used."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from wire_server import Wire, serving

from medexam.files import host_name
from medexam.serve import RegisteredServer, Registry
from waiting import BACKSTOP_S

MAIN = """
from medexam.cli import run
from medexam.cli import run_command
run.send_to_mlflow = lambda *_, **__: None
run_command()
"""
"""The command line without MLflow."""
WAITING = "no server of tiny is registered in {}; waiting 86400 s for one"


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "servers.json")


@pytest.fixture(autouse=True)
def spec(tmp_path: Path, registry: Registry) -> None:
    """spec.yaml: guided answers of the registry's servers."""
    model = {"engine": "vllm", "name": "tiny", "endpoints": [f"registry:{registry.path}"], "wait_s": 86400}
    program = {"kind": "zero_shot", "answer_format": "guided"}
    document = {"name": "trial", "dataset": {"name": "headqa_sample"}, "model": model, "program": program}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(document))


@contextmanager
def running(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """`medexam run` of eight questions in a process of its own."""
    command = [sys.executable, "-c", MAIN, "run", "spec.yaml", "--limit", "8", "--runs-dir", "runs"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]", words: str) -> bool:
    """Whether the process says this before it ends."""
    assert process.stderr is not None
    return any(words in line for line in process.stderr)


def register(registry: Registry, wire: Wire, *, ready: bool = True) -> None:
    registry.add(RegisteredServer(wire.address, "tiny", host_name(), os.getpid(), job="17", ready=ready))


def answers(folder: Path) -> list[str]:
    (path,) = folder.glob("runs/*/predictions.jsonl")
    return [json.loads(line)["question"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_run_outlasts_a_pending_job(medexam, tmp_path: Path, registry: Registry) -> None:
    waiting = WAITING.format(registry.path)
    with serving(Wire()) as wire:
        register(registry, wire)
        assert medexam("run", "spec.yaml", "--limit", 4, "--runs-dir", "runs")[0] == 0
        first = answers(tmp_path)
        registry.remove(wire.address)  # the job was requeued, and is pending

        with running(tmp_path) as process:
            assert said(process, waiting)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=BACKSTOP_S)
            assert process.returncode == 3
            assert "Traceback" not in err
            assert err.splitlines()[-1].startswith("medexam: interrupted: ")
        assert answers(tmp_path) == first

        asked = len(wire.requests)
        with running(tmp_path) as process:
            assert said(process, waiting)
            assert len(wire.requests) == asked
            register(registry, wire, ready=False)
            assert said(process, f"{wire.address} still loads; waiting for it")
            register(registry, wire)
            process.communicate(timeout=BACKSTOP_S)
            assert process.returncode == 0
    both = answers(tmp_path)
    assert both[:4] == first
    assert len(set(both)) == len(both) == 8
