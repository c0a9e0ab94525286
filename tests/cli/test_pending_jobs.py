"""A run whose servers' job is pending: it waits and says so, Ctrl-C loses nothing, and a late server is used."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wire_server import Wire, serving

from medexam.files import host_name
from medexam.serve import RegisteredServer, Registry
from waiting import BACKSTOP_S

MAIN = "import sys; sys.modules['mlflow'] = None; from medexam.cli import run_command; run_command()"
"""The command line without MLflow."""


@contextmanager
def running(spec: Path) -> Iterator["subprocess.Popen[str]"]:
    """`medexam run` of eight questions in a process of its own."""
    command = [sys.executable, "-c", MAIN, "run", str(spec), "--limit", "8"]
    streams = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, cwd=spec.parent, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]", words: str) -> bool:
    """Whether the process says this before it ends."""
    return any(words in line for line in process.stderr)


def answers(folder: Path) -> list[str]:
    (path,) = folder.glob("runs/*/predictions.jsonl")
    return [json.loads(line)["question"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_run_outlasts_a_pending_job(run, spec, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "servers.json")
    model = {"engine": "vllm", "name": "tiny", "endpoints": [f"registry:{registry.path}"], "wait_s": 86400}
    path = spec(model=model, program={"kind": "zero_shot", "answer_format": "guided"})
    waiting = f"no server of tiny is registered in {registry.path}; waiting 86400 s for one"
    with serving(Wire()) as wire:
        entry = RegisteredServer(wire.address, "tiny", host_name(), os.getpid(), job="17", ready=True)
        registry.add(entry)
        run(path, "--limit", 4)
        first = answers(tmp_path)
        registry.remove(wire.address)  # the job was requeued, and is pending
        asked = len(wire.requests)
        with running(path) as process:
            assert said(process, waiting)
            assert len(wire.requests) == asked
            registry.add(entry)
            process.communicate(timeout=BACKSTOP_S)
            assert process.returncode == 0
    both = answers(tmp_path)
    assert both[:4] == first
    assert len(set(both)) == len(both) == 8
