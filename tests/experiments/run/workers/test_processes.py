"""Runs whose questions processes of this machine ask, beside those of one process; workers and drivers are killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from medexam.errors import EngineError, SpecError
from medexam.experiments import Runner, Stop, plan_experiment, plan_resume
from medexam.experiments.entry.carry_out import Carriers, carry_out
from medexam.experiments.run.spending import Limits
from medexam.experiments.run.workers import number, processes
from medexam.experiments.run.workers.executor import SpreadExecutor
from medexam.experiments.run.workers.processes import open_processes
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.store.shards import SHARDS
from medexam.metrics import TIMES
from stored_runs import without_times
from waiting import until
from watching import Silent

QUESTIONS = 120
SLOW = """
import asyncio
from medexam.serve import ScriptedEngine

class Slow(ScriptedEngine):
    concurrency = 4

    def __init__(self, reply, seconds, most=None):
        super().__init__(reply)
        self._seconds, self._most = seconds, most

    async def reply(self, dialogue):
        if self._most is not None and len(self.dialogues) >= self._most:
            await asyncio.Event().wait()
        await asyncio.sleep(self._seconds)
        return await super().reply(dialogue)
"""
WORDS = {"cell": 2, "patient": 3, "nurs": 1, "which": 4}
REPLIES = {**{word: f"{{Answer: {number}}}" for word, number in WORDS.items()}, "*": "{Answer: 1}"}


class Watcher(Silent):
    """Counts, and does something once so many questions are answered."""

    def __init__(self, at: int | None = None, act=None) -> None:
        self.begun = self.answers = 0
        self._at, self._act = at, act

    def asked(self) -> None:
        self.begun += 1

    def answered(self, prediction) -> None:
        self.answers += 1
        if self.answers == self._at:
            self._act()


def interrupt() -> None:
    """What Ctrl-C does to a run."""
    for task in asyncio.all_tasks():
        if task.get_coro().__name__ == "hold":
            task.cancel()


@pytest.fixture
def spec(tmp_path):
    """A document over the bundled questions of HEAD-QA, whose engine takes 50 ms for a reply."""
    (tmp_path / "slow.py").write_text(SLOW)
    return {
        "name": "spread",
        "dataset": {"name": "headqa_sample"},
        "model": {"engine": f"{tmp_path}/slow.py:Slow", "args": {"reply": REPLIES, "seconds": 0.05}},
        "program": {"kind": "zero_shot"},
    }


@pytest.fixture(scope="module")
def shared():
    """Two processes for all tests that leave them alive."""
    with open_processes(2) as launcher:
        yield SpreadExecutor(launcher)


@pytest.fixture
def executor():
    """Two processes of a test's own."""
    with open_processes(2) as launcher:
        yield SpreadExecutor(launcher)


def run(plan, executor=None, watcher=None, **options):
    (stored,), stop = Runner(plan, watcher or Watcher(), executor=executor, **options).run()
    return stored, stop


def planned(spec, runs_dir):
    return plan_experiment(spec, {}, runs_dir=runs_dir)


def answers(stored) -> dict[str, dict]:
    """What each question was answered, without what no two runs share; each stands there once."""
    found = [json.loads(line) for line in (stored.folder.path / PREDICTIONS).read_text().splitlines()]
    assert max(Counter(one["question"] for one in found).values()) == 1
    return {one.pop("question"): without_times(one) for one in found}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_two_processes_answer_what_one_does(spec, tmp_path, executor, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen = []
    watcher = Watcher(20, lambda: seen.extend(Path(f"/proc/{one.pid}/cmdline").read_text() for one in executor.workers))
    alone, _ = run(planned(spec, tmp_path / "alone"))
    spread, stop = run(planned(spec, tmp_path / "spread"), executor, watcher)
    assert stop is None
    assert answers(spread) == answers(alone)
    assert len(answers(spread)) == QUESTIONS
    assert spread.metrics.model_dump(exclude=set(TIMES)) == alone.metrics.model_dump(exclude=set(TIMES))
    assert (spread.record.spec_digest, spread.folder.name) == (alone.record.spec_digest, alone.folder.name)
    assert (watcher.begun, watcher.answers) == (QUESTIONS, QUESTIONS)
    assert not (spread.folder.path / SHARDS).exists()
    told = spread.environment["executor"]
    assert (told["kind"], told["lost"]) == ("processes", [])
    assert sum(one["asked"] for one in told["workers"]) == QUESTIONS
    assert all(one["asked"] for one in told["workers"])
    assert len(seen) == 2
    assert "sk-secret" not in "".join(seen)


def test_questions_of_a_killed_process_go_to_the_other(spec, tmp_path, executor, caplog) -> None:
    watcher = Watcher(20, lambda: os.kill(executor.workers[0].pid, signal.SIGKILL))
    stored, stop = run(planned(spec, tmp_path / "runs"), executor, watcher)
    assert stop is None
    assert len(answers(stored)) == watcher.answers == QUESTIONS
    assert stored.environment["executor"]["lost"] == [executor.workers[0].name]
    assert "the other workers take its pending questions" in caplog.text
    # The other one dies too: what is left is pending, and one process asks it.
    watcher = Watcher(20, lambda: os.kill(executor.workers[1].pid, signal.SIGKILL))
    with pytest.raises(EngineError, match="every worker has stopped"):
        run(planned(spec, tmp_path / "others"), executor, watcher)
    watcher = Watcher()
    stored, _ = run(planned(spec, tmp_path / "others"), None, watcher)
    assert len(answers(stored)) == QUESTIONS
    assert watcher.answers <= QUESTIONS - 20


def test_ctrl_c_keeps_what_is_done_and_processes_ask_the_rest(spec, tmp_path, shared) -> None:
    watcher = Watcher(20, interrupt)
    stored, stop = run(planned(spec, tmp_path / "runs"), shared, watcher)
    assert stop is Stop.INTERRUPTED
    kept = len(answers(stored))
    assert watcher.begun == watcher.answers == kept
    assert 20 <= kept < QUESTIONS
    watcher = Watcher()
    resumed, stop = run(plan_resume(str(stored.folder.path), runs_dir=tmp_path), shared, watcher)
    assert (stop, watcher.answers) == (None, QUESTIONS - kept)
    assert sum(one["asked"] for one in resumed.environment["executor"]["workers"]) == watcher.answers
    assert len(answers(resumed)) == QUESTIONS


def test_a_limit_stops_all_processes(spec, tmp_path, shared) -> None:
    spec["model"]["args"]["reply"] = {"*": {"error": "transport"}}
    stored, stop = run(planned(spec, tmp_path / "runs"), shared, limits=Limits(failures=5))
    assert stop is Stop.FAILURES
    assert 5 <= stored.metrics.failed < QUESTIONS


def test_a_fault_of_a_process_is_raised_as_it_is(spec, tmp_path, shared) -> None:
    spec["model"]["args"]["more"] = 1
    with pytest.raises(SpecError, match="making it failed: TypeError"):
        run(planned(spec, tmp_path / "runs"), shared)


def test_a_process_that_cannot_start_is_one_line(spec, tmp_path, executor, monkeypatch) -> None:
    monkeypatch.setattr(processes, "_MODULE", "medexam.nothing_here")
    with pytest.raises(EngineError, match=r"a worker cannot start on .*: No module named medexam.nothing_here; "):
        run(planned(spec, tmp_path / "runs"), executor)


def test_a_dead_process_whose_own_child_lives_on_is_noticed(spec, tmp_path, executor) -> None:
    # The child holds the pipe open on which the process wrote what it meant for the user.
    (tmp_path / "slow.py").write_text(f"import subprocess\nsubprocess.Popen(['sleep', '20'])\n{SLOW}")
    watcher = Watcher(20, lambda: os.kill(executor.workers[0].pid, signal.SIGKILL))
    stored, _ = run(planned(spec, tmp_path / "runs"), executor, watcher)
    assert len(answers(stored)) == QUESTIONS
    assert stored.environment["executor"]["lost"] == [executor.workers[0].name]


def test_processes_of_a_killed_driver_end_and_leave_their_answers(spec, tmp_path) -> None:
    # After ten replies a process gets no more, so that the run is still going on when the driver is killed.
    (tmp_path / "spec.yaml").write_text(
        yaml.safe_dump({**spec, "model": {**spec["model"], "args": {**spec["model"]["args"], "most": 10}}})
    )
    command = [sys.executable, "-c", "from medexam.cli import run_command; run_command()", "run", "spec.yaml"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    options = ["--runs-dir", "runs", "--workers", "2"]
    with (tmp_path / "said").open("w+") as said:
        driver = subprocess.Popen([*command, *options], cwd=tmp_path, env=environment, stderr=said, stdout=said)
        until(lambda: driver.poll() is not None or _kept(tmp_path) >= 20, "20 answers")
        children = Path(f"/proc/{driver.pid}/task").glob("*/children")
        pids = [int(pid) for task in children for pid in task.read_text().split()]
        driver.kill()
        driver.wait()
        until(lambda: not any(map(is_alive, pids)), "the end of the processes")
        said.seek(0)
        told = said.read()
    assert len(pids) == 2
    assert "2 processes of this machine ask" in told
    assert "Traceback" not in told
    (folder,) = (tmp_path / "runs").glob("*")
    (left,) = plan_resume(str(folder), runs_dir=tmp_path).cells
    assert len({question.key for question in left.pending}) == QUESTIONS - _kept(tmp_path)


def _kept(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob(f"runs/*/{SHARDS}/*.jsonl"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"engine": "embedded", "dtype": "float32"}, "engine embedded holds the model"),
        ({"engine": "vllm", "profile": "llama-3.1-8b", "start": True}, "model.start starts a server for one process"),
    ],
)
def test_several_processes_are_refused_what_only_one_can(spec, tmp_path, changes, reason) -> None:
    plan = planned({**spec, "model": changes}, tmp_path / "runs")
    with pytest.raises(SpecError, match=reason):
        carry_out(plan, Carriers(workers=2), Watcher, print)


@pytest.mark.parametrize(("each", "expected"), [(40, 3), (60, 2), (1000, 1), (1, 5)])
def test_auto_takes_as_many_as_help(spec, tmp_path, monkeypatch, each, expected) -> None:
    replies = tmp_path / "replies.yaml"
    replies.write_text(yaml.safe_dump(REPLIES))
    monkeypatch.setattr(number, "QUESTIONS_EACH", each)
    monkeypatch.setattr(number, "usable_cores", lambda: 5)
    plan = planned({**spec, "model": {"engine": "scripted", "path": str(replies)}}, tmp_path / "runs")
    assert number.choose_number(plan.cells, "auto")[0] == expected
    assert number.choose_number(plan.cells, 500)[0] == QUESTIONS


def test_auto_leaves_an_engine_of_ones_own_in_one_process(spec, tmp_path) -> None:
    found = number.choose_number(planned(spec, tmp_path / "runs").cells, "auto")
    assert found == (1, "an engine of your own may hold the model")
