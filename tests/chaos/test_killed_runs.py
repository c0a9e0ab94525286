"""Processes that die, and disks that are full: no prediction is lost, and none is asked again."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from wire_server import Wire, serving

import medexam
from waiting import until

MEDEXAM = "from medexam.cli import run_command; run_command()"
QUESTIONS = 60
COLUMNS = {"options": ["A", "B", "C", "D"], "answer": "answer"}
FULL = 12_000
"""Bytes that a file may have on the full disk: more than `spec.json` has, fewer than the predictions."""


def call(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write_spec(tmp_path: Path, model: dict[str, Any], dataset: dict[str, Any]) -> Path:
    path = tmp_path / "spec.json"
    document = {"name": "killed", "dataset": dataset, "model": model, "program": {"kind": "zero_shot"}}
    path.write_text(json.dumps(document))
    return path


def scripted(tmp_path: Path) -> Path:
    (tmp_path / "replies.yaml").write_text('{"a": "{Answer: 1}", "*": "{Answer: 2}"}')
    model = {"engine": "scripted", "path": str(tmp_path / "replies.yaml")}
    return write_spec(tmp_path, model, {"name": "headqa_sample", "language": "en"})


def lines_of(runs_dir: Path) -> list[str]:
    """The lines on disk; none before there are any."""
    return [line for path in runs_dir.glob("*/predictions.jsonl") for line in path.read_text().splitlines()]


def go_on(spec: Path, runs_dir: Path, limit: int | None = None) -> Any:
    (run,) = medexam.run(spec, limit=limit, runs_dir=runs_dir, track=False, progress=False)
    assert run.complete
    return run


class Stopping(Wire):
    """Holds what it is asked once it has answered half of the questions."""

    def __init__(self, questions: int) -> None:
        super().__init__()
        self.half, self.free = questions // 2, threading.Event()

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if len(self.bodies("/v1/chat/completions")) > self.half:
            self.free.wait()
        return super().reply(path, body)


@pytest.mark.parametrize("questions", [QUESTIONS, pytest.param(500, marks=pytest.mark.nightly)])
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path, questions: int) -> None:
    rows = "".join(f"Which is number {number}?,one,two,three,four,B\n" for number in range(questions))
    (tmp_path / "exam.csv").write_text(f"question,A,B,C,D,answer\n{rows}")
    dataset = {"kind": "choice", "path": str(tmp_path / "exam.csv"), "columns": COLUMNS, "language": "en"}
    with serving(Stopping(questions)) as wire:
        spec = write_spec(tmp_path, {"engine": "vllm", "endpoints": [wire.address]}, dataset)
        runs = tmp_path / "runs"
        process = call("-c", MEDEXAM, "run", spec, "--runs-dir", runs, "--tracking-uri", "none")
        until(lambda: lines_of(runs) or process.poll() is not None, "the first predictions")
        assert process.poll() is None, process.communicate()[1]
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = lines_of(runs)
        wire.free.set()
        sent = {json.dumps(body["messages"]) for body in wire.bodies("/v1/chat/completions")}
    # Another server, which what the dead process sent cannot reach late.
    with serving(Wire()) as wire:
        run = go_on(write_spec(tmp_path, {"engine": "vllm", "endpoints": [wire.address]}, dataset), runs)
        again = [json.dumps(body["messages"]) for body in wire.bodies("/v1/chat/completions")]
    after = lines_of(runs)
    kept = [line for line in before if line in after]
    assert len(before) - len(kept) <= 1, "the last line may be torn"
    keys = [json.loads(line)["question"] for line in after]
    assert len(keys) == len(set(keys)) == questions
    assert sum("Which is number" in messages for messages in again) == questions - len(kept)
    stored = [json.dumps(call.messages) for one in run.predictions.values() for call in one.calls]
    assert len(stored) == len({*stored} & {*sent, *again}) == questions


def test_a_full_disk_loses_nothing_that_was_on_it(tmp_path: Path) -> None:
    spec, runs = scripted(tmp_path), tmp_path / "runs"
    go_on(spec, runs, 10)
    before = lines_of(runs)
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({FULL}, {FULL})); {MEDEXAM}"
    full = call("-c", limited, "run", spec, "--limit", QUESTIONS, "--runs-dir", runs, "--tracking-uri", "none")
    _, err = full.communicate()
    assert full.returncode == 2, err
    assert len([line for line in err.splitlines() if line.startswith("medexam: cannot write")]) == 1
    assert "Traceback" not in err
    assert lines_of(runs) == before
    go_on(spec, runs, QUESTIONS)
    assert lines_of(runs)[:10] == before
    keys = [json.loads(line)["question"] for line in lines_of(runs)]
    assert len(keys) == len(set(keys)) == QUESTIONS
