"""A soak catches commands that lose, ask twice, print tracebacks, hang or come out otherwise."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from soak.baselines import Baseline
from soak.children import Child
from soak.records import Step, Trial
from soak.results import lines
from soak.server import ServerProcess
from soak.table import lines as tables
from soak.table import summarize
from soak.trials import Soaker
from soak.works import Work
from waiting import BACKSTOP_S

STAMPS = [f"stamp{letter * 16}" for letter in "abc"]


class Log(ServerProcess):
    """A server that is not there, with a log that the test writes."""

    def ask(self, *stamps: str) -> None:
        with self.log.open("a") as stream:
            stream.writelines(f"{stamp}\n" for stamp in stamps)


@pytest.fixture
def soaker(tmp_path: Path) -> Soaker:
    server = Log(tmp_path / "asked.log")
    baseline = Baseline(seconds=0.1, cold_s=0.1, result="as it should be", files={})
    return Soaker(works={}, baselines={"work": baseline}, server=server, inputs=tmp_path, scratch=tmp_path)


@pytest.fixture
def carry_out(soaker, tmp_path):
    """`carry_out(meanwhile, said=, **work)`: judge a made-up command, meanwhile something happens to its folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "log.jsonl").write_text(f'{{"reply": "{STAMPS[0]}"}}\n{{"reply": "{STAMPS[1]}"}}\n{{"reply": "')

    def call(meanwhile, said="", ends=0, result="as it should be") -> Trial:
        soaker.works["work"] = work = Work("work", (), lambda _: result, lines("*.jsonl"), ("*.jsonl",))
        soaker.start = lambda *_, **__: MadeUp(tmp_path, said, ends)
        trial = Trial("work", "seed", [soaker.step(work, folder, Step("end", True), lambda _: meanwhile(folder))])
        soaker.judge(trial, folder)
        return trial

    return call


class MadeUp(Child):
    """A child that was never there, and has ended already; with None it never ends."""

    def __init__(self, folder: Path, said: str, ends: int | None) -> None:
        super().__init__(0, folder, ends)
        (folder / "stderr.txt").write_text(said)

    def wait(self, seconds: float) -> bool:
        return self.status is not None

    def end(self) -> None:
        self.status = -9 if self.status is None else self.status


def counts(trial: Trial) -> dict[str, int]:
    """What is not 0 of what is counted."""
    found = summarize([trial], "seed", 1.0)["commands"]["all"]
    return {name: count for name, count in found.items() if count and name != "ends"}


def test_a_command_without_faults_has_none(carry_out, soaker) -> None:
    soaker.server.ask(STAMPS[0], STAMPS[1])  # before it began
    trial = carry_out(lambda folder: soaker.server.ask(STAMPS[2]))
    assert not trial.failed
    assert counts(trial) == {}


@pytest.mark.parametrize(
    ("meanwhile", "fields", "counted"),
    [
        (lambda folder: (folder / "log.jsonl").write_text(""), {}, {"lost": 2}),
        (bool, {"said": "x\nTraceback (most recent call last):\n"}, {"tracebacks": 1}),
        (bool, {"said": "Exception ignored in: <x>"}, {"tracebacks": 1}),
        (bool, {"ends": 1}, {"tracebacks": 1, "wedges": 1}),
        (bool, {"ends": 2}, {"wedges": 1}),
        (bool, {"ends": None}, {"wedges": 1}),
        (bool, {"result": "other"}, {"other results": 1}),
    ],
    ids=["lost", "traceback", "ignored", "exit code", "refused", "hangs", "differs"],
)
def test_each_fault_is_counted(carry_out, meanwhile, fields, counted) -> None:
    trial = carry_out(meanwhile, **fields)
    assert trial.failed
    assert counts(trial) == counted


def test_a_question_whose_reply_is_on_the_disk_is_asked_twice(carry_out, soaker) -> None:
    trial = carry_out(lambda _: soaker.server.ask(STAMPS[0], STAMPS[2], STAMPS[0]))
    assert counts(trial) == {"asked twice": 2}


def test_a_table_has_a_row_for_each_command_and_disturbance() -> None:
    steps = [Step("SIGKILL", True, kills=1, statuses=[-9]), Step("end", False, statuses=[0])]
    found = summarize([Trial("run", "1", steps), Trial("index", "2", steps[1:], differs=True)], "7", 2.0)
    head, _, columns, _, *rows = tables(found)
    assert "2 minutes, `SEED=7`, 2 commands in processes of their own" in head
    names = [name.strip() for name in columns.split("|")[1:-1]]
    assert names == ["command", "kills", "ends", "lost", "asked twice", "tracebacks", "wedges", "other results"]
    assert [row.split("|")[1:4] for row in rows[:3]] == [
        [" index   ", "     0 ", "    1 "],
        [" run     ", "     1 ", "    1 "],
        [" all     ", "     1 ", "    2 "],
    ]
    assert [trial["seed"] for trial in found["failed"]] == ["2"]


def test_a_killed_build_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "soak", "--works", "build", "--kills=1", "--jobs=1", "--seed=3", "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=BACKSTOP_S,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["commands"]["build"]["kills"] >= 1
    assert found["commands"]["build"]["ends"] >= 1
