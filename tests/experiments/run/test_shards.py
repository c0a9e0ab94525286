"""Runs whose questions processes of this machine ask, beside those of one process; one of them is killed."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import medexam
from stored_runs import without_times
from waiting import until

QUESTIONS = 120
SCALING = Path(__file__).parents[3] / "docs" / "scaling.md"
SHARD = (sys.executable, "-m", SCALING.read_text().partition("--wrap 'python -m ")[2].split()[0])
SLOW = """
import asyncio
from pathlib import Path
from medexam.serve import ScriptedEngine

class Slow(ScriptedEngine):
    concurrency = 4

    def __init__(self, reply, seconds):
        super().__init__(reply)
        self._seconds = seconds

    async def reply(self, dialogue):
        with (Path(__file__).parent / "asked").open("a") as stream:
            stream.write("x")
        await asyncio.sleep(self._seconds)
        return await super().reply(dialogue)
"""
WORDS = {"cell": 2, "patient": 3, "nurs": 1, "which": 4}
REPLIES = {**{word: f"{{Answer: {number}}}" for word, number in WORDS.items()}, "*": "{Answer: 1}"}


@pytest.fixture
def spec(tmp_path):
    """All questions of the bundled sample, for an engine that takes 50 ms for a reply."""
    (tmp_path / "slow.py").write_text(SLOW)
    return {
        "name": "spread",
        "dataset": {"name": "headqa_sample"},
        "model": {"engine": f"{tmp_path}/slow.py:Slow", "args": {"reply": REPLIES, "seconds": 0.05}},
        "program": {"kind": "zero_shot"},
    }


@pytest.fixture
def asked_count(tmp_path):
    """How many questions all processes together have asked."""
    path = tmp_path / "asked"
    return lambda: path.stat().st_size if path.exists() else 0


def children() -> set[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


@pytest.fixture
def kept(tmp_path):
    """How many answers are on the disk."""
    return lambda: sum(path.read_bytes().count(b"\n") for path in tmp_path.glob("runs/*/*/*.jsonl"))


@pytest.fixture
def meanwhile(kept):
    """`meanwhile(act)`: does it with the new processes' ids once 20 answers are kept; joined at the end."""
    threads, before = [], children()

    def start(act):
        def wait() -> None:
            until(lambda: kept() >= 20, "20 answers")
            act(sorted(children() - before))

        threads.append(threading.Thread(target=wait))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


def answers(run) -> dict[str, dict]:
    """What each question was answered, without what no two runs share; each stands there once."""
    assert (run.folder / "predictions.jsonl").read_bytes().count(b"\n") == len(run.predictions)
    return {key: without_times(one.to_json()) for key, one in run.predictions.items()}


def executor_of(run):
    return json.loads((run.folder / "environment.json").read_text())["executor"]


def test_two_processes_answer_what_one_does_though_one_is_killed(
    ask, spec, tmp_path, meanwhile, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen = list[str]()

    def kill_one(pids):
        lines = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in pids}
        seen.extend(lines.values())
        os.kill(max(pid for pid in pids if SHARD[-1] in lines[pid]), signal.SIGKILL)

    meanwhile(kill_one)
    (spread,) = ask(spec, workers=2)
    (alone,) = ask(spec, runs_dir=tmp_path / "alone")
    assert answers(spread) == answers(alone)
    assert (len(answers(spread)), spread.id) == (QUESTIONS, alone.id)
    times = {"latency_p50_s", "latency_p95_s"}
    assert spread.metrics.model_dump(exclude=times) == alone.metrics.model_dump(exclude=times)
    assert not (spread.folder / "parts").exists()
    assert (spread.folder / "prompts.jsonl").read_bytes() == (alone.folder / "prompts.jsonl").read_bytes()
    told = executor_of(spread)
    assert (told["kind"], len(told["lost"]), len(told["workers"])) == ("processes", 1, 2)
    assert "died while it asked; another process asks its rest" in capsys.readouterr().err
    assert len(seen) >= 2
    assert "sk-secret" not in "".join(seen)


def test_shards_that_nobody_drives_ask_a_run_that_was_begun(ask, spec, tmp_path, asked_count) -> None:
    (begun,) = ask(spec, limits=medexam.Limits(minutes=0))
    assert (begun.n, asked_count()) == (0, 0)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    shards = [subprocess.Popen([*SHARD, begun.folder, str(part), "2"], env=environment) for part in range(2)]
    assert [shard.wait() for shard in shards] == [0, 0]
    subprocess.run([*SHARD, begun.folder, "1", "2"], env=environment, check=True)
    assert asked_count() == QUESTIONS
    (merged,) = ask(spec)
    assert (len(answers(merged)), merged.complete, asked_count()) == (QUESTIONS, True, QUESTIONS)


@pytest.mark.nightly
def test_shards_ask_further_models_too(ask, spec) -> None:
    steps = [{"use": {"kind": "zero_shot"}}, {"use": {"kind": "zero_shot"}, "model": "strong"}]
    spec |= {"models": {"strong": spec["model"]}, "program": {"name": "drafted", "steps": steps}}
    (run,) = ask(spec, workers=2)
    assert run.complete
    assert {call.asked for one in run.predictions.values() for call in one.calls} == {None, "strong"}


@pytest.mark.nightly
def test_ctrl_c_keeps_what_is_done_and_one_process_asks_the_rest(ask, spec, meanwhile) -> None:
    meanwhile(lambda pids: os.kill(os.getpid(), signal.SIGINT))
    runs = ask(spec, workers=2)
    done = len(answers(runs[0]))
    assert (runs.stop, runs[0].n) == ("interrupted", done)
    assert 20 <= done < QUESTIONS
    told = executor_of(runs[0])
    assert sum(one["asked"] for one in told["workers"]) == done
    (resumed,) = ask(spec)
    assert (len(answers(resumed)), resumed.complete) == (QUESTIONS, True)
