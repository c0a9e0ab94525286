"""Runs spread over a real Ray cluster of this machine, beside local ones; workers and drivers are killed for real."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import dspy
import pytest
import yaml

from medexam.datasets import load_exam_set
from medexam.errors import EngineError, RunFolderError, SpecError
from medexam.experiments import Runner, Stop, plan_experiment, plan_resume
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.run.ray.cluster import open_cluster
from medexam.experiments.run.ray.launcher import RayLauncher
from medexam.experiments.run.spending import Limits
from medexam.experiments.run.workers.executor import SpreadExecutor
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.store.shards import SHARDS
from medexam.metrics import TIMES
from medexam.programs import WithNearest, build_program, save_program
from medexam.specs import DatasetSpec, ZeroShotSpec
from retrievers.tiny_models import save_medcpt
from stored_runs import without_times
from waiting import until
from watching import Silent

pytestmark = pytest.mark.ray
QUESTIONS = 120


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
    """A document over the bundled questions of HEAD-QA, whose replies depend on the question."""
    replies = tmp_path / "replies.yaml"
    words = {"cell": 2, "patient": 3, "nurs": 1, "which": 4}
    replies.write_text(yaml.safe_dump({**{word: f"{{Answer: {n}}}" for word, n in words.items()}, "*": "{Answer: 1}"}))
    return {
        "name": "spread",
        "dataset": {"name": "headqa_sample"},
        "model": {"engine": "scripted", "path": str(replies)},
        "program": {"kind": "zero_shot"},
    }


@pytest.fixture(scope="module")
def executor(cluster):
    """Two workers for all tests that leave them alive."""
    return SpreadExecutor(RayLauncher(cluster, workers=2))


@pytest.fixture
def mortal(cluster):
    """Two workers of a test's own."""
    made = SpreadExecutor(RayLauncher(cluster, workers=2))
    yield made
    for worker in made.workers:
        worker.handle.kill()


def run(spec, runs_dir, executor=None, watcher=None, **options):
    plan = plan_experiment(spec, {}, runs_dir=runs_dir)
    (stored,), stop = Runner(plan, watcher or Watcher(), executor=executor, **options).run()
    return stored, stop


def lines(stored) -> list[dict]:
    return [json.loads(line) for line in (stored.folder.path / PREDICTIONS).read_text().splitlines()]


def answers(stored) -> dict[str, dict]:
    """What each question was answered, without what no two runs share; each stands there once."""
    found = lines(stored)
    assert max(Counter(one["question"] for one in found).values()) == 1
    return {one.pop("question"): without_times(one) for one in found}


def measured(stored) -> dict:
    """The metrics, without the seconds that they took."""
    return stored.metrics.model_dump(exclude=set(TIMES))


def test_a_spread_run_is_the_local_run(spec, tmp_path, executor, cluster) -> None:
    local, _ = run(spec, tmp_path / "local")
    watcher = Watcher()
    spread, stop = run(spec, tmp_path / "spread", executor, watcher)
    assert stop is None
    assert answers(spread) == answers(local)
    assert measured(spread) == measured(local)
    assert spread.record.spec_digest == local.record.spec_digest
    assert spread.folder.name == local.folder.name
    assert (watcher.begun, watcher.answers) == (QUESTIONS, QUESTIONS)
    assert not (spread.folder.path / SHARDS).exists()
    told = spread.environment["executor"]
    assert (told["kind"], told["ray"]) == ("ray", cluster.version)
    assert sum(one["asked"] for one in told["workers"]) == QUESTIONS
    assert all(one["asked"] for one in told["workers"])
    assert spread.environment["asked"] == QUESTIONS
    assert spread.environment["engine"] == local.environment["engine"]
    again, _ = run(spec, tmp_path / "spread", executor, watcher)
    assert watcher.answers == QUESTIONS
    assert again.metrics == spread.metrics


def test_passages_that_the_driver_found_are_shown_by_workers(spec, tmp_path, executor, monkeypatch) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    corpus = Path(__file__).parents[1] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"
    spec["dataset"]["limit"] = 20
    spec["program"] = {
        "kind": "retrieve_then_answer",
        "k": 2,
        "retriever": {"kind": "bm25", "corpus": str(corpus)},
    }
    local, _ = run(spec, tmp_path / "local")
    spread, _ = run(spec, tmp_path / "spread", executor)
    assert answers(spread) == answers(local)
    assert sum(len(one["passages"] or ()) for one in lines(spread)) > 20


def test_nearest_demonstrations_are_chosen_by_the_drivers_vectors(spec, tmp_path, executor) -> None:
    encoder = save_medcpt(tmp_path / "medcpt")
    words = load_exam_set(DatasetSpec(name="headqa_sample"))
    solved = [
        dspy.Example(question=one, answer=words.golds[one.key].number)
        for one in words.questions
        if one.exam.year == words.questions[0].exam.year
    ]
    program = build_program(ZeroShotSpec(kind="zero_shot"), "en")
    for predictor in program.predictors():
        predictor.demos = solved
    (tmp_path / "best").mkdir()
    finder = NearestDemonstrations(solved, 3, str(encoder))
    save_program(WithNearest(program, finder), tmp_path / "best" / "program.json", ZeroShotSpec(kind="zero_shot"), "en")
    others = sorted({one.exam.year for one in words.questions} - {words.questions[0].exam.year})
    spec["dataset"]["years"] = others[:1]
    spec["program"]["load"] = str(tmp_path / "best")
    local, _ = run(spec, tmp_path / "local")
    spread, _ = run(spec, tmp_path / "spread", executor)
    assert answers(spread) == answers(local)
    assert len(lines(spread)) == spread.metrics.n > 0


def test_questions_of_a_killed_worker_go_to_the_others(spec, tmp_path, mortal, caplog) -> None:
    watcher = Watcher(20, lambda: os.kill(mortal.workers[0].pid, signal.SIGKILL))
    stored, stop = run(spec, tmp_path / "runs", mortal, watcher)
    assert stop is None
    assert len(answers(stored)) == stored.metrics.n == QUESTIONS
    assert watcher.answers == QUESTIONS
    assert stored.environment["executor"]["lost"] == [mortal.workers[0].name]
    assert "the other workers take its pending questions" in caplog.text
    # The other one dies too: what is left is pending.
    watcher = Watcher(20, lambda: os.kill(mortal.workers[1].pid, signal.SIGKILL))
    with pytest.raises(EngineError, match="every worker has stopped"):
        run(spec, tmp_path / "others", mortal, watcher)
    watcher = Watcher()
    stored, _ = run(spec, tmp_path / "others", None, watcher)
    assert len(answers(stored)) == QUESTIONS
    assert watcher.answers <= QUESTIONS - 20


def test_what_a_killed_driver_left_is_taken_up_by_a_local_run(spec, tmp_path, cluster) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    here = Path(__file__)
    command = [sys.executable, here.with_name("driver.py"), tmp_path / "spec.json", tmp_path / "runs", cluster.address]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parents[1]), *sys.path])}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as driver:
        until(lambda: driver.poll() is not None or count_lines(tmp_path.glob(f"runs/*/{SHARDS}/*.jsonl")) >= 8)
        driver.kill()
    assert driver.returncode == -signal.SIGKILL
    folder = next(tmp_path.glob("runs/*"))
    parts = list(folder.glob(f"{SHARDS}/*.jsonl"))
    until(lambda: not any(holds_open(parts)), "the end of the workers")
    kept = count_lines(parts)
    with next(iter(parts)).open("ab") as stream:
        stream.write(b'{"question": "torn')
    watcher = Watcher()
    (stored,), stop = Runner(plan_resume(str(folder), runs_dir=tmp_path), watcher).run()
    assert stop is None
    assert watcher.answers == QUESTIONS - kept
    assert 8 <= kept < QUESTIONS
    assert len(answers(stored)) == QUESTIONS
    assert not (folder / SHARDS).exists()


def count_lines(parts):
    """How many whole lines these files hold."""
    return sum(part.read_bytes().count(b"\n") for part in parts)


def holds_open(parts):
    """Which processes still hold these files open."""
    names = {str(part) for part in parts}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(link.readlink()) in names:
                yield link
        except OSError:
            continue


def test_ctrl_c_keeps_what_is_done_and_a_spread_resume_asks_the_rest(spec, tmp_path, executor) -> None:
    watcher = Watcher(20, interrupt)
    stored, stop = run(spec, tmp_path / "runs", executor, watcher)
    assert stop is Stop.INTERRUPTED
    kept = len(answers(stored))
    assert watcher.begun == watcher.answers == kept
    assert 20 <= kept < QUESTIONS
    watcher = Watcher()
    (resumed,), stop = Runner(plan_resume(str(stored.folder.path), runs_dir=tmp_path), watcher, executor=executor).run()
    assert stop is None
    assert watcher.answers == QUESTIONS - kept
    assert len(answers(resumed)) == QUESTIONS


def test_as_many_failures_as_are_allowed_stop_all_workers(spec, tmp_path, executor) -> None:
    Path(spec["model"]["path"]).write_text(yaml.safe_dump({"*": {"error": "transport"}}))
    stored, stop = run(spec, tmp_path / "runs", executor, limits=Limits(failures=5))
    assert stop is Stop.FAILURES
    assert 5 <= stored.metrics.failed < QUESTIONS


def test_a_fault_of_a_worker_is_raised_as_it_is(spec, tmp_path, executor) -> None:
    plan = plan_experiment(spec, {}, runs_dir=tmp_path / "runs")
    Path(spec["model"]["path"]).write_text("- no mapping")
    with pytest.raises(SpecError, match="must be a mapping"):
        Runner(plan, Watcher(), executor=executor).run()


def test_a_worker_that_sees_another_model_at_the_same_path_is_refused(spec, tmp_path, executor) -> None:
    plan = plan_experiment(spec, {}, runs_dir=tmp_path / "runs")
    Path(spec["model"]["path"]).write_text("'*': '{Answer: 4}'")
    with pytest.raises(EngineError, match=r"the model that answers has the script \w+, and the planned one \w+"):
        Runner(plan, Watcher(), executor=executor).run()
    assert not (plan.cells[0].folder.path / PREDICTIONS).exists()


def test_a_folder_that_workers_do_not_see_is_refused(spec, tmp_path, executor) -> None:
    # This process's own descriptor: a worker finds something else, or nothing, behind the same path.
    private = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(RunFolderError, match=r"does not see /proc/self/fd/.*a folder that all machines share"):
            run(spec, Path(f"/proc/self/fd/{private}/runs"), executor)
    finally:
        os.close(private)


def _answer_as_a_web_server(server) -> None:
    stream, _ = server.accept()
    with stream:
        stream.recv(1024)
        stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nonsense"])
def test_an_address_where_nobody_is_is_refused(address, monkeypatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(EngineError, match=r"no Ray cluster answers at|is not HOST:PORT"), open_cluster(address):
        pass


def test_another_version_of_ray_is_told_in_one_line(cluster, monkeypatch) -> None:
    from ray._private.utils import check_version_info

    def join(**_) -> None:
        check_version_info({"ray_version": "2.9.0", "python_version": "3.9.1"}, "this process")

    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", join)
    monkeypatch.setattr("ray.shutdown", lambda: None)
    told = pytest.raises(EngineError, match=r"other versions than this process.*2\.9\.0")
    with told as raised, open_cluster(cluster.address):
        pass
    assert "\n" not in str(raised.value)


def test_a_node_that_does_not_start_in_time_is_told_in_one_line(monkeypatch) -> None:
    def start(**_) -> None:
        raise Exception("The current node timed out during startup.\nThe GCS is overloaded.")

    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", start)
    message = "a Ray cluster on this machine cannot be started: The current node timed out during startup. The GCS"
    with pytest.raises(EngineError, match=f"^{message} is overloaded.$"), open_cluster(None):
        pass


def test_something_else_at_the_address_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=_answer_as_a_web_server, args=[server])
        answering.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(EngineError, match="is not a Ray cluster"), open_cluster(address):
            pass
        answering.join()
