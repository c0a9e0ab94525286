"""`medexam run` and `medexam plan`: what is printed where, how they exit, and how a run goes on."""

import io
import json
import os
import re
import signal
import sys
import threading
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pytest
from wire_server import Wire, serving

from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec
from waiting import until

TWO = {"program": [{"kind": "zero_shot"}, {"kind": "few_shot"}]}


@pytest.mark.usefixtures("tracked")
def test_a_table_shows_n_and_chance_and_a_new_store_is_made(medexam, spec, tmp_path) -> None:
    code, out, err = medexam("run", spec())
    assert code == 0
    assert re.search(r"zero_shot +6", out)
    assert "chance" in out.lower()
    lines = err.splitlines()
    assert "zero_shot en: asking 6 of 6 questions ..." in lines
    assert any(line.endswith(": 6 of 6 questions") for line in lines)
    assert "medexam ui --runs-dir runs" in err
    assert (tmp_path / "runs" / "mlflow.db").is_file()
    code, out, err = medexam("run", spec(), "--json", "--tracking-uri", f"sqlite:///{spec()}/mlflow.db")
    assert (code, json.loads(out)[0]["metrics"]["n"], "medexam track" in err) == (0, 6, True), "an outage is a line"


def test_a_limit_is_widened_without_asking_again(medexam, run, spec) -> None:
    (first,) = run(spec())
    assert {"run_id", "run_dir", "spec_digest", "dataset", "language", "program", "model"} <= set(first)
    answers = Path(first["run_dir"], "predictions.jsonl")
    before = answers.read_text()
    (wider,) = run(spec(), "--limit", 12)
    assert (wider["run_id"], wider["metrics"]["n"]) == (first["run_id"], 12)
    assert answers.read_text().startswith(before)
    code, out, _ = medexam("plan", spec(), "--limit", 18, "--json")
    assert (code, json.loads(out)[0]["owed"]) == (0, 6)


def test_plan_shows_a_prompt_and_counts_calls(medexam, spec) -> None:
    path = spec(program={"kind": "chain_of_thought", "answer_format": "guided"})
    code, out, _ = medexam("plan", path, "--json")
    (cell,) = json.loads(out)
    assert (code, cell["questions"], cell["calls"]) == (0, 6, 12)
    assert [turn["role"] for turn in cell["prompt"]] == ["system", "user"]
    assert "Think through each option briefly" in " ".join(medexam("plan", path)[1].replace("│", " ").split())


def test_a_terminal_obeys_nothing_that_a_server_says_in_a_refusal(medexam, spec) -> None:
    code, out, err = medexam("run", spec({"*": {"error": "server", "text": "no\x1b[2J\x07\x9b31m way"}}))
    assert code == 3
    assert r"no\x1b[2J\x07\x9b31m way" in err.splitlines()[-1]
    assert not {"\x07", "\x1b", "\x9b"} & {*out, *err}


def test_an_incomplete_run_exits_with_3_and_says_how_to_go_on(medexam, spec, failing) -> None:
    path = spec()
    failing("")
    code, out, err = medexam("run", path, "--json")
    (document,) = json.loads(out)
    (failure,) = document["failures"]
    assert (code, document["metrics"]["failed"]) == (3, 6)
    assert (failure["boundary"], failure["kind"], failure["questions"]) == ("server", "LMServerError", 6)
    last = err.strip().splitlines()[-1]
    assert "incomplete: 6 questions still pending" in last
    assert "scripted server failure" in last
    assert last.endswith(f"; medexam run --resume runs/{document['run_id']} asks them")
    _, out, _ = medexam("report", document["run_dir"])
    assert re.search(r"server +LMServerError +.*scripted server failure.* 6", out)
    assert f"They do not count; `medexam run --resume {document['run_dir']}` asks them.\n" in out


def test_resume_asks_what_is_pending_and_nothing_else(medexam, run, spec, failing) -> None:
    answered, *others = [question.stem for question in load_exam_set(DatasetSpec(limit=6)).questions]
    path = spec()
    failing(*others)
    (first,) = run(path, code=3)
    assert (first["metrics"]["n"], first["metrics"]["failed"]) == (1, 5)
    failing(answered)
    (resumed,) = run("--resume", first["run_dir"])
    assert (resumed["run_id"], resumed["metrics"]["n"], resumed["failures"]) == (first["run_id"], 6, [])
    code, out, err = medexam("run", "--resume", first["run_id"])
    assert (code, "zero_shot" in out, "medexam: " in err) == (0, True, False)


def test_resume_of_an_edited_prompt_says_what_changed(run, refused, spec, tmp_path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: 'Choose. $form'}")
    (document,) = run(spec(program={"kind": "zero_shot", "prompt": str(words)}))
    words.write_text("en: {zero_shot: 'Choose! $form'}")
    answers = Path(document["run_dir"], "predictions.jsonl")
    answers.write_text("".join(answers.read_text().splitlines(keepends=True)[:-1]))
    line = refused("run", "--resume", document["run_dir"])
    assert re.search(r"changed \(.*words\..*\); restore it, or run its spec to start another run", line)


def test_max_failures_stops_the_run_with_what_it_has(medexam, spec, tmp_path) -> None:
    code, out, err = medexam("run", spec({"*": {"error": "transport"}}, matrix=TWO), "--max-failures", 3)
    assert (code, "LMTransportError" in out) == (3, True)
    last = err.strip().splitlines()[-1]
    assert "stopped early: the limit --max-failures of failed questions is reached: 12 questions still" in last
    assert last.endswith(f"run {tmp_path / 'spec.yaml'} again with the same settings to ask them")
    (folder,) = (tmp_path / "runs").glob("trial-*")
    assert "| network | LMTransportError | " in (folder / "report.md").read_text()


def test_a_spent_budget_stops_the_run_and_the_next_one_goes_on(medexam, spec) -> None:
    code, _, err = medexam("run", spec(matrix=TWO), "--max-tokens", 1)
    assert (code, "the limit --max-tokens is reached: 12 questions still pending; spent: 0 calls, 0 tok" in err) == (
        3,
        True,
    )
    assert medexam("run", spec(matrix=TWO), "--max-tokens", 10**9, "--max-cost", 5)[0] == 0
    assert medexam("run", spec(matrix=TWO), "--max-tokens", 1)[0] == 0, "nothing is left that a budget could stop"


def test_version_and_shipped_experiments(medexam) -> None:
    assert medexam("--version") == (0, f"{version('medexam')}\n", "")
    code, out, _ = medexam("plan", "quickstart", "--json")
    assert (code, {cell["questions"] for cell in json.loads(out)}) == (0, {60})


@dataclass
class Gated(Wire):
    """Says which model it is, and replies to no question before the gate is open."""

    gate: threading.Event = field(default_factory=threading.Event)
    stems: list[str] = field(default_factory=list)
    """Of the questions."""

    def reply(self, path, body):
        if self.is_question(body):
            self.gate.wait(60)
        return super().reply(path, body)

    def is_question(self, body) -> bool:
        """Whether a request asks a question of the exam, and not only which model answers and what it takes."""
        return any(stem in str(turn["content"]) for turn in body.get("messages", ()) for stem in self.stems)


def test_ctrl_c_waits_for_what_is_in_flight_and_keeps_it(medexam, spec, tmp_path, monkeypatch) -> None:
    stems = [question.stem for question in load_exam_set(DatasetSpec(limit=6)).questions]
    with serving(Gated(stems=stems)) as wire:
        path = spec(model={"engine": "vllm", "name": "tiny", "endpoints": [wire.address]})

        class Heard(io.StringIO):
            """Standard error that opens the gate once the run says that it waits for six questions."""

            def write(self, text: str) -> int:
                count = super().write(text)
                if "Stopping: waiting a few seconds for 6 questions" in self.getvalue():
                    wire.gate.set()
                return count

        def interrupt() -> None:
            until(lambda: sum(map(wire.is_question, wire.bodies("/v1/chat/completions"))) == 6)
            os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(sys, "stderr", errors := Heard())
        (thread := threading.Thread(target=interrupt)).start()
        code, _, _ = medexam("run", path)
        thread.join()
    assert code == 3
    last = errors.getvalue().splitlines()[-1]
    assert last == "medexam: interrupted: 0 questions still pending; nothing is left to ask"
    (report,) = tmp_path.glob("runs/*/report.md")
    assert "Complete: 6 questions" in report.read_text()
