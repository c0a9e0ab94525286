"""A soak catches commands that lose, ask twice, print tracebacks, hang or come out otherwise."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from wire_server import serving

from soak import elsewhere, pairs, trials
from soak.baselines import Baseline
from soak.children import Child
from soak.elsewhere import MADE, MARK
from soak.names import write_files
from soak.phases import PHASES, phase_of
from soak.records import Step, Trial
from soak.results import lines
from soak.server import REFUSALS, Counting, ServerProcess
from soak.table import lines as tables
from soak.table import summarize
from soak.trials import Soaker
from soak.works import Work, make_works
from waiting import BACKSTOP_S

SAID = "medexam: it is so\n"
TRACEBACK = "Traceback (most recent call last):\n"
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

    def signal(self, number: int) -> None:
        """There is no process to send it to."""

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


@pytest.fixture
def play(soaker, tmp_path):
    """`play(work, said=, ends=, does=, **fields)`: a trial whose commands are made up; each `does` something first."""
    (tmp_path / "keys.txt").write_text("1\n2")

    def call(name, said=SAID, ends=0, does=lambda words, folder: None, undisturbed=None, prepare=bool) -> Trial:
        work = make_works(tmp_path, tmp_path, "http://127.0.0.1:1/v1")[name]
        folder, trial = tmp_path / "trial", Trial(name, "seed")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        prepare(folder)

        def start(words, cwd, streams, before=bool):
            streams.mkdir(exist_ok=True)
            (streams / "stdout.txt").touch()
            does(list(words), cwd)
            return MadeUp(streams, said, ends)

        soaker.baselines["work"] = soaker.baselines[name] = Baseline(0.1, 0.1, undisturbed, {})
        soaker.start = start
        work.play(soaker.stage(work, folder, trial, random.Random(1)))
        return trial

    return call


class TestPairs:
    ALONE = ([["pair-x"]], [])

    def lay(self, folder: Path) -> None:
        for name in ("pair-x", "soak-y"):
            (folder / "runs" / name).mkdir(parents=True)
            (folder / "runs" / name / "spec.json").touch()
            (folder / "runs" / name / "predictions.jsonl").write_text(f'{{"reply": "{STAMPS[0]}"}}\n')

    @pytest.fixture(autouse=True)
    def _at_once(self, monkeypatch) -> None:
        monkeypatch.setattr(pairs, "ASKED_S", 0.0)
        monkeypatch.setattr(pairs, "in_fork", lambda _: self.ALONE)

    def test_faults_are_counted(self, play) -> None:
        assert counts(play("pairs", undisturbed=self.ALONE, prepare=self.lay)) == {}
        found = counts(play("pairs", said=TRACEBACK, undisturbed=self.ALONE, prepare=self.lay))
        assert found["tracebacks"] >= 3
        found = counts(play("pairs", ends=None, undisturbed=self.ALONE, prepare=self.lay))
        assert found["wedges"] >= 3

    def test_what_rm_takes_from_under_a_lock_is_wrong(self, play) -> None:
        said = "x was removed or moved while answers were written to it"
        assert "whose lock was held" in play("pairs", said=said, undisturbed=self.ALONE, prepare=self.lay).wrong[0]

    def test_lines_that_go_without_rm_are_lost(self, play) -> None:
        def lose(words, folder):
            for path in folder.glob("runs/*/predictions.jsonl"):
                path.write_text("")

        assert counts(play("pairs", ends=2, does=lose, undisturbed=self.ALONE, prepare=self.lay))["lost"] == 2


class TestElsewhere:
    def lay(self, folder: Path) -> None:
        for name in ("x", "y"):
            (folder / MADE / name).mkdir(parents=True)
            (folder / MADE / name / "spec.json").write_text('{"cell": {}}')

    def test_code_that_is_imported_is_wrong(self, play, monkeypatch) -> None:
        monkeypatch.setattr(elsewhere, "_STRANGER_SHARE", 1.0)
        assert not play("elsewhere", prepare=self.lay).failed
        wrong = play("elsewhere", does=lambda words, folder: (folder / MARK).touch(), prepare=self.lay).wrong
        assert len(wrong) == 7
        assert "imported code that a run from elsewhere names" in wrong[0]

    @pytest.mark.parametrize("way", [*elsewhere._WAYS])
    def test_each_way_to_come_here_leaves_runs(self, tmp_path, way) -> None:
        for seed in range(20):
            self.lay(tmp_path / str(seed))
            runs = elsewhere._WAYS[way](tmp_path / str(seed) / MADE, random.Random(seed))
            assert {path.name for path in runs.iterdir()} >= {"x", "y"}


class TestNames:
    def test_what_is_written_under_odd_names_is_judged(self, play) -> None:
        def make(words, folder):
            (folder / "runs" / "x").mkdir(parents=True, exist_ok=True)
            (folder / "runs" / "x" / "spec.json").touch()
            (folder / "runs" / "x" / "report.md").write_text("a <b>")
            (folder / ".." / "up").touch()

        wrong = "; ".join(play("names", said="\x07", does=make).wrong)
        for words in (
            "prints '\\x07'",
            "MLflow lacks ['x']",
            "report.md holds a tag: '<b>'",
            "outside the folder is ['up']",
        ):
            assert words in wrong
        assert not play("names").failed

    def test_files_hold_any_name(self, tmp_path) -> None:
        for seed in range(30):
            write_files(tmp_path, ["1"], random.Random(seed))
            assert len(json.loads((tmp_path / "names.json").read_text())) == 3


class TestRefusals:
    @pytest.mark.parametrize(
        ("fields", "wrong"),
        [
            ({"ends": 2}, None),
            ({"ends": 0}, "exit code 0"),
            ({"ends": 2, "said": SAID * 2}, "2 lines say why"),
            ({"ends": 2, "said": f"Give Feedback\n{SAID}"}, "litellm says 'Give Feedback'"),
        ],
        ids=["one line", "no refusal", "two lines", "noise"],
    )
    def test_one_line_says_why(self, play, fields, wrong) -> None:
        found = play("refusals", **fields).wrong
        assert (len(found), wrong in found[0]) == (1, True) if wrong else not found

    @pytest.mark.parametrize("how", [*REFUSALS])
    def test_the_server_refuses_from_some_request_on(self, tmp_path, how) -> None:
        with serving(Counting(log=tmp_path / "asked.log")) as wire, httpx.Client(timeout=5) as client:
            place = wire.address.replace("/v1", f"/refusing/{how}/1/x/v1/models")
            assert client.get(place).json()["data"][0]["id"] == "tiny"
            status, content = REFUSALS[how]
            if not status:
                with pytest.raises(httpx.TransportError):
                    client.get(place)
            else:
                again = client.get(place)
                assert (again.status_code, again.content) == (status, content)


@pytest.mark.parametrize(
    ("said", "phase"),
    [
        ("", "loading"),
        ("Preparing tiny (vllm) at x ...", "probing"),
        ("Looking up passages for x ...", "retrieving"),
        ("Looking up passages for a name of\nseveral lines ...", "retrieving"),
        ("x en: asking 2 of 2 questions ...", "asking"),
        ("x en: asking 1 of 1 questions ...", "scoring"),
        ("x-1: 30 of 30 questions", "scoring"),
        ("The MLflow UI: medexam ui", "tracking"),
    ],
)
def test_a_phase_is_known_by_what_was_printed_last(tmp_path, said, phase) -> None:
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / "predictions.jsonl").write_text("{}\n")
    assert phase_of(f"medexam: before\n{said}\n" if said else "", tmp_path, tmp_path, time.time()) == phase


@pytest.mark.parametrize("aim", PHASES[:3])
def test_a_signal_waits_for_its_phase(soaker, tmp_path, aim) -> None:
    said = {"loading": "", "probing": "Preparing x ...\n", "retrieving": "Looking up x ...\n"}
    child, step, signals = MadeUp(tmp_path, "", None), Step("SIGINT", True), []
    child.signal = signals.append
    later = iter(said.values())

    def wait(seconds: float) -> bool:
        (tmp_path / "stderr.txt").write_text(
            next(later, said["retrieving"]) if seconds == trials._LOOK_S else said[aim]
        )
        return False

    child.wait = wait
    soaker._kill_run(step, [child], moment=0.1, number=2, folder=tmp_path, aim=aim)
    assert (step.phase, step.kills, signals) == (aim, 1, [2])


def test_a_phase_that_never_comes_is_hit_by_no_signal(soaker, tmp_path) -> None:
    step = Step("SIGINT", True)
    soaker._kill_run(step, [MadeUp(tmp_path, "", 0)], moment=0.1, number=2, folder=tmp_path, aim="page")
    assert (step.phase, step.kills) == ("", 0)


def test_a_page_is_known_by_its_temporary_folder(tmp_path) -> None:
    (tmp_path / "tmpabc").mkdir()
    said = "The MLflow UI: medexam ui\n"
    assert [phase_of(said, tmp_path, tmp_path, moment) for moment in (0.0, time.time() + 9)] == ["page", "tracking"]


def test_a_list_has_an_entry_for_each_command_and_disturbance() -> None:
    steps = [Step("SIGKILL", True, kills=1, statuses=[-9]), Step("end", False, statuses=[0])]
    found = summarize([Trial("run", "1", steps), Trial("index", "2", steps[1:], differs=True)], "7", 2.0)
    head, _, *rows = tables(found)
    assert "2 minutes, `SEED=7`, 2 commands in processes of their own" in head
    assert rows == [
        "- index: 1 ends, 1 other results",
        "- run: 1 kills, 1 ends",
        "- all: 1 kills, 2 ends, 0 lost, 0 asked twice, 0 tracebacks, 0 wedges, 1 other results",
        "",
        "Disturbed by:",
        "",
        "- SIGKILL: 1 times, 1 kills",
        "- end: 2 times",
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
