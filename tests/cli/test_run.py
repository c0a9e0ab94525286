"""The command line as a user meets it: what is printed where, and how it exits."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from wire_server import Wire, serving

from medexam.datasets import load_exam_set
from medexam.errors import ServerError
from medexam.serve import ScriptedEngine
from medexam.specs import DatasetSpec
from waiting import BACKSTOP_S, until


@pytest.fixture
def spec(tmp_path, runs_dir):
    """Writes a spec over scripted replies and gives its path."""

    def write(replies: object = "{Answer: 1}", **changes: object):
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": replies}))
        document = {
            "name": "trial",
            "dataset": {"name": "headqa_sample", "limit": 6},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": {"kind": "zero_shot"},
            **changes,
        }
        path = tmp_path / "spec.yaml"
        path.write_text(yaml.safe_dump({key: value for key, value in document.items() if value is not None}))
        return path

    return write


@pytest.mark.usefixtures("tracked")
def test_json_is_one_document_on_standard_output(medexam, spec) -> None:
    code, out, _ = medexam("run", spec(), "--json")
    assert code == 0
    (run,) = json.loads(out)
    assert {"run_id", "run_dir", "spec_digest", "dataset", "language", "program", "model", "metrics"} <= set(run)
    assert run["metrics"]["n"] == 6


@pytest.mark.usefixtures("tracked")
def test_the_table_tells_n_and_chance(medexam, spec, tmp_path) -> None:
    path = spec()
    shutil.rmtree(tmp_path / "runs")
    code, out, err = medexam("run", path)
    assert code == 0
    assert "zero_shot" in out
    assert "chance" in out.lower()
    assert "medexam ui --runs-dir runs" in err
    assert (tmp_path / "runs" / "mlflow.db").is_file()


def test_a_model_at_chance_level_is_said_to_be_too_small(medexam, spec) -> None:
    code, out, _ = medexam("run", spec(matrix={"program": ["zero_shot", "few_shot", "longest"]}))
    assert code == 0
    assert "All answer at chance level: this model is too small for these exams" in " ".join(out.split())
    assert "chance level" not in medexam("run", "headqa_sample", "--program", "longest,random")[1]


def test_a_limit_is_widened_without_asking_again(medexam, spec) -> None:
    medexam("run", spec(), "--json")
    code, out, _ = medexam("run", spec(), "--limit", 12, "--json")
    assert (code, json.loads(out)[0]["metrics"]["n"]) == (0, 12)
    code, out, _ = medexam("plan", spec(), "--limit", 18, "--json")
    assert (code, json.loads(out)[0]["owed"]) == (0, 6)


def test_plan_shows_a_prompt_and_counts_calls(medexam, spec) -> None:
    program = {"kind": "chain_of_thought", "answer_format": "guided"}
    code, out, _ = medexam("plan", spec(program=program), "--json")
    (cell,) = json.loads(out)
    assert (code, cell["questions"], cell["calls"]) == (0, 6, 12)
    assert [turn["role"] for turn in cell["prompt"]] == ["system", "user"]
    code, out, _ = medexam("plan", spec(program=program))
    assert "Think through each option briefly" in " ".join(out.replace("│", " ").split())


def test_a_terminal_obeys_nothing_that_a_server_says_in_a_refusal(medexam, spec, monkeypatch) -> None:
    def refuse(engine, request):
        raise ServerError("no\x1b[2J\x07\x9b31m way")

    monkeypatch.setattr(ScriptedEngine, "answer", refuse)
    code, out, err = medexam("run", spec())
    assert code == 3
    assert r"no\x1b[2J\x07\x9b31m way" in err.splitlines()[-1]
    assert not {"\x07", "\x1b", "\x9b"} & {*out, *err}


def test_an_incomplete_run_exits_with_3_and_says_how_to_go_on(medexam, spec, failing) -> None:
    failing(lambda _: True)
    code, out, err = medexam("run", spec(), "--json")
    assert code == 3
    assert json.loads(out)[0]["metrics"]["failed"] == 6
    (run,) = json.loads(out)
    (failure,) = run["failures"]
    assert (failure["boundary"], failure["kind"], failure["questions"]) == ("server", "LMServerError", 6)
    last = err.strip().splitlines()[-1]
    assert "incomplete: 6 questions still pending" in last
    assert "scripted server failure" in last
    assert last.endswith(f"; medexam run --resume runs/{run['run_id']} asks them")
    code, out, _ = medexam("report", run["run_dir"])
    assert re.search(r"server +LMServerError +.*scripted server failure.* 6", out)
    assert f"6 questions are pending; medexam run --resume {run['run_dir']} asks them\n" in out
    failing(lambda _: False)
    code, out, _ = medexam("run", spec(), "--json")
    assert (code, json.loads(out)[0]["metrics"]["n"]) == (0, 6)
    assert "Failed" not in medexam("report", run["run_dir"])[1]


@pytest.mark.usefixtures("tracked")
def test_an_mlflow_outage_costs_a_line_and_nothing_else(medexam, spec, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    code, out, err = medexam("run", spec(), "--json", "--tracking-uri", f"sqlite:///{tmp_path}/file/mlflow.db")
    assert (code, json.loads(out)[0]["metrics"]["n"]) == (0, 6)
    assert "medexam track" in err


@pytest.mark.parametrize(
    ("changes", "settings", "said"),
    [
        ({"datset": {}}, [], "did you mean 'dataset'?"),
        ({"dataset": {"name": "headqa_sample", "limit": "x"}}, [], "dataset.limit"),
        ({"matrix": {"program.knd": ["a"]}}, [], "did you mean 'kind'?"),
        ({}, ["dataset.years=[1999]"], "1999"),
        ({}, ["dataset.path=nowhere.json", "dataset.name=headqa_v1"], "nowhere.json"),
        ({}, ["model.path=nowhere.yaml"], "nowhere.yaml"),
        ({}, ["program.prompt=nowhere.yaml"], "nowhere.yaml"),
        ({}, ["program.kind=few_shot", "program.examples=nowhere.yaml"], "nowhere.yaml"),
        ({}, ["limit"], "key=value"),
        ({"model": {"engine": "vllm", "endpoints": ["http://127.0.0.1:9/v1"]}}, [], "127.0.0.1:9"),
        ({"model": {"engine": "embedded", "path": "nowhere"}}, [], "nowhere"),
        ({"dataset": {"name": "headqa_sample", "language": "ru"}}, [], "ru"),
        ({}, ["dataset.disciplines=[nursery]"], "nursing"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(medexam, spec, changes, settings, said) -> None:
    options = [item for setting in settings for item in ("--set", setting)]
    code, out, err = medexam("run", spec(**changes), *options)
    assert code == 2
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith("medexam: ")
    assert said in last
    assert "Traceback" not in err


def test_a_spec_that_does_not_exist(medexam) -> None:
    code, _, err = medexam("run", "quickstrat")
    assert code == 2
    assert "quickstart" in err


def test_runs_that_cannot_be_written(medexam, spec, runs_dir) -> None:
    shutil.rmtree(runs_dir)
    runs_dir.write_text("")
    code, _, err = medexam("run", spec())
    assert code == 2
    assert "--runs-dir" in err


def test_resume_asks_what_the_run_owes_and_nothing_else(medexam, spec, failing, monkeypatch) -> None:
    stem = load_exam_set(DatasetSpec(limit=6)).questions[0].stem
    failing(lambda prompt: stem not in prompt)
    _, out, err = medexam("run", spec(), "--json")
    (run,) = json.loads(out)
    assert (run["metrics"]["n"], run["metrics"]["failed"]) == (1, 5)
    failing(lambda prompt: stem in prompt)
    code, out, _ = medexam("run", "--resume", run["run_dir"], "--json")
    (resumed,) = json.loads(out)
    assert (code, resumed["run_id"], resumed["metrics"]["n"], resumed["failures"]) == (0, run["run_id"], 6, [])
    monkeypatch.setitem(sys.modules, "mlflow", None)
    code, out, err = medexam("run", "--resume", run["run_id"])
    assert (code, "zero_shot" in out, "medexam: " in err) == (0, True, False)


@pytest.mark.parametrize(
    "options",
    [["SPEC"], ["--set", "model.seed=3"], ["--language", "es"], ["--limit", "3"], ["--fresh"], ["--repeat", "1"]],
)
def test_resume_takes_its_spec_from_the_run(medexam, spec, options) -> None:
    path = spec()
    code, out, err = medexam("run", *[path if word == "SPEC" else word for word in options], "--resume", "x")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "leave out SPEC, --set, --price, --limit, --fresh, --repeat and the flags that say what is asked" in err


def test_resume_of_an_edited_prompt_says_what_changed(medexam, spec, tmp_path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: 'Choose. $form'}")
    _, out, _ = medexam("run", spec(program={"kind": "zero_shot", "prompt": str(words)}), "--json")
    words.write_text("en: {zero_shot: 'Choose! $form'}")
    (run,) = json.loads(out)
    assert medexam("run", "--resume", run["run_dir"])[0] == 0, "nothing is pending, so nothing can be mixed"
    answers = Path(run["run_dir"], "predictions.jsonl")
    answers.write_text("".join(answers.read_text().splitlines(keepends=True)[:-1]))
    code, out, err = medexam("run", "--resume", run["run_dir"])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(r"changed \(words\..*\); restore it, or run its spec to start another run", err)


def test_max_failures_stops_the_run_with_what_it_has(medexam, spec, tmp_path) -> None:
    matrix = {"program": [{"kind": "zero_shot"}, {"kind": "few_shot"}]}
    code, out, err = medexam("run", spec({"error": "transport"}, matrix=matrix), "--max-failures", 3)
    assert code == 3
    assert "LMTransportError" in out
    last = err.strip().splitlines()[-1]
    assert "stopped early: the limit --max-failures of failed questions is reached: 12 questions still" in last
    assert last.endswith(f"run {tmp_path / 'spec.yaml'} again with the same settings to ask them")
    (folder,) = (tmp_path / "runs").glob("trial-*")
    assert "| network | LMTransportError | " in (folder / "report.md").read_text()
    assert medexam("run", spec(), "--max-failures", 0)[0] == 2


def test_a_spent_budget_stops_the_run_and_the_next_one_goes_on(medexam, spec) -> None:
    two = {"program": [{"kind": "zero_shot"}, {"kind": "few_shot"}]}
    code, _, err = medexam("run", spec(matrix=two), "--max-tokens", 1)
    assert (code, "the limit --max-tokens is reached: 6 questions still pending" in err) == (3, True)
    code, _, err = medexam("run", spec(matrix=two), "--max-minutes", 0)
    assert (code, "the limit --max-minutes is reached: 6 questions still pending" in err) == (3, True)
    assert medexam("run", spec(matrix=two), "--max-tokens", 10**9, "--max-cost", 5)[0] == 0
    # Everything is answered: nothing is left that a budget could stop.
    assert medexam("run", spec(matrix=two), "--max-tokens", 1)[0] == 0


@dataclass
class Gated(Wire):
    """Says which model it is, and replies to no question before the gate is open."""

    gate: threading.Event = field(default_factory=threading.Event)
    stems: list[str] = field(default_factory=list)
    """Of the questions."""

    def reply(self, path, body):
        if self.is_question(body):
            self.gate.wait()
        return super().reply(path, body)

    def is_question(self, body) -> bool:
        """Whether a request asks a question of the exam, and not only which model answers and what it takes."""
        return any(stem in str(turn["content"]) for turn in body.get("messages", ()) for stem in self.stems)


PATIENT = f"""
from medexam.cli import run
from medexam.cli import run_command
from medexam.experiments.run import scheduler
scheduler.GRACE_S = {10 * BACKSTOP_S}
run.send_to_mlflow = lambda *_, **__: None
run_command()
"""
"""The command line without MLflow; the first Ctrl-C waits so long that what ends within `BACKSTOP_S` has not waited."""


@pytest.fixture
def interrupted(spec, tmp_path):
    """A run with six questions in flight that was sent one Ctrl-C and says so; gives the process and the server."""
    stems = [question.stem for question in load_exam_set(DatasetSpec(limit=6)).questions]
    with serving(Gated(stems=stems)) as wire:
        model = {"engine": "vllm", "name": "tiny", "endpoints": [wire.address]}
        command = [sys.executable, "-c", PATIENT, "run", str(spec(model=model))]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            try:
                until(lambda: sum(map(wire.is_question, wire.bodies("/v1/chat/completions"))) == 6)
                process.send_signal(signal.SIGINT)
                assert any(
                    line.startswith("Stopping: waiting a few seconds for 6 questions") for line in process.stderr
                )
                yield process, wire
            finally:
                wire.gate.set()
                process.kill()


def test_the_first_ctrl_c_waits_for_what_is_in_flight(interrupted, tmp_path) -> None:
    process, wire = interrupted
    wire.gate.set()
    _, err = process.communicate(timeout=BACKSTOP_S)
    assert process.returncode == 3
    assert err.splitlines()[-1] == "medexam: interrupted: 0 questions still pending; nothing is left to ask"
    (report,) = tmp_path.glob("runs/*/report.md")
    assert "Complete: 6 questions" in report.read_text()


def test_the_second_ctrl_c_does_not_wait(interrupted, tmp_path) -> None:
    process, _ = interrupted
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=BACKSTOP_S)
    assert process.returncode == 3
    assert "interrupted: 6 questions still pending; medexam run --resume" in err.splitlines()[-1]
    assert "Traceback" not in err
    (report,) = tmp_path.glob("runs/*/report.md")
    assert "Incomplete: 0 of 6 questions scored, 0 failed, 6 not asked yet." in report.read_text()


def test_usage_errors_exit_with_2(medexam) -> None:
    code, _, err = medexam("run")
    assert (code, err) == (2, "medexam: nothing to run: give a SPEC, or a run to continue with --resume RUN\n")


def test_version_and_shipped_experiments(medexam) -> None:
    assert medexam("--version") == (0, f"{version('medexam')}\n", "")
    code, out, _ = medexam("plan", "quickstart", "--json")
    assert code == 0
    assert {cell["questions"] for cell in json.loads(out)} == {60}
