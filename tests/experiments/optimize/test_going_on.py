"""Optimizations that are interrupted, go on without a call made twice, and are refused before anything is asked."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
import yaml
from wire_server import Wire, serving

import medexam as package
from medexam.datasets import locate_files
from medexam.errors import RunFolderError, SpecError
from table_cases import read_table

INTERRUPTING = """
import itertools, os, pathlib, signal, time
asked = itertools.count(1)

def score(question, gold, prediction):
    if next(asked) == int(pathlib.Path(__file__).with_name("after").read_text()):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(3)  # the main thread hears of it before the rest is asked, on a busy machine too
    return gold.accepts(prediction.answer)
"""


@pytest.mark.parametrize("after", [15, 40])
def test_ctrl_c_keeps_what_was_done_and_it_goes_on(optimize, tmp_path, after) -> None:
    (tmp_path / "mine.py").write_text(INTERRUPTING)
    (tmp_path / "after").write_text(str(after))
    metric = {"optimizer.metric": f"{tmp_path / 'mine.py'}:score"}
    stopped = optimize(metric)
    assert (stopped.record["ending"], stopped.record["calls"] > 0) == ("interrupted", True)
    done, whole = optimize(metric), optimize(metric, fresh=True)
    assert (done.folder, done.record["ending"], done.trials) == (stopped.folder, "complete", whole.trials)
    assert done.record["calls"] == whole.record["calls"], "nothing is asked twice"


KILLING = """
import itertools, os
from pathlib import Path
from medexam.serve import ScriptedEngine

asked = itertools.count(1)

class Engine(ScriptedEngine):
    concurrency = 1

    async def reply(self, dialogue):
        with Path(__file__).with_name("asked").open("a") as log:
            print(repr(dialogue.messages), file=log)
        return await super().reply(dialogue)

def engine(path):
    return Engine.from_file(Path(path))

def score(question, gold, prediction):
    if next(asked) == int(os.environ.get("KILLED_AFTER", 0)):
        os._exit(9)
    return gold.accepts(prediction.answer)
"""


def test_a_killed_one_repeats_nothing(optimize, document, tmp_path) -> None:
    (tmp_path / "mine.py").write_text(KILLING)
    document["optimizer"]["metric"] = f"{tmp_path / 'mine.py'}:score"
    args = {"path": document["model"]["path"]}
    document["model"] = {"engine": f"{tmp_path / 'mine.py'}:engine", "args": args}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(document))
    command = [sys.executable, "-m", "medexam", "optimize", "spec.yaml", "--runs-dir", "runs"]
    for after in ("10", "40"):
        killed = subprocess.run(command, cwd=tmp_path, env={**os.environ, "KILLED_AFTER": after}, check=False)
        assert killed.returncode == 9
    done, log = optimize(), tmp_path / "asked"
    asked = log.read_text().splitlines()
    assert len(asked) - len(set(asked)) <= 2, "only a call that is in flight when it is killed is lost"
    # A call is counted before it is sent, so one that was begun when its process was killed may never have been asked.
    assert len(asked) <= done.record["calls"] <= len(asked) + 2
    assert len(set(asked)) == optimize(fresh=True).record["calls"]


def test_a_corrected_gold_that_teaches_or_chooses_is_another_optimization(document, medexam, tmp_path) -> None:
    exams = json.loads(locate_files("headqa_sample", "en")[0].read_text())
    document["dataset"] |= {"name": "headqa_v1", "path": str(tmp_path / "HEAD_EN.json")}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(document))

    def identity(name: str | None = None) -> str:
        changed = json.loads(json.dumps(exams))
        if name is not None:
            record = changed["exams"][name]["data"][0]
            record["ra"] = str(int(record["ra"]) % 4 + 1)
        (tmp_path / "HEAD_EN.json").write_text(json.dumps(changed))
        return json.loads(medexam("optimize", "spec.yaml", "--plan", "--json")[1])["id"]

    first = identity()
    assert identity("Cuaderno_2016_1_B") == first, "a tested gold"
    assert len({first, identity("Cuaderno_2013_1_B"), identity("Cuaderno_2015_1_B")}) == 3


@dataclass
class Weights(Wire):
    """A server that says which weights it serves, and whose replies name another model after so many."""

    root: str = "org/first"
    replies: int = 0
    honest: int = 10**9
    swapped: int = 10**9
    """Replies after which other weights are served."""

    def reply(self, path, body):
        status, said = super().reply(path, body)
        if path == "/v1/models":
            said["data"][0]["root"] = self.root if self.replies < self.swapped else "org/second"
        elif path.endswith("/completions") and body.get("max_tokens") != 1:
            self.replies += 1
            if self.replies > self.honest:
                said["model"] = "another"
        return status, said


def test_it_does_not_go_on_with_another_model(optimize, document) -> None:
    with serving(Weights()) as wire:
        document["model"] = {"engine": "vllm", "endpoints": [wire.address]}
        stopped = optimize({"optimizer.max_tokens": 3_000})
        assert stopped.record["ending"] == "budget"
        wire.root = "org/second"
        asked = len(wire.bodies("/v1/chat/completions"))
        with pytest.raises(RunFolderError, match="or start over: with --fresh"):
            optimize()
        assert len(wire.bodies("/v1/chat/completions")) <= asked + 20, "the probe alone asks"
        wire.root = "org/first"
        done = optimize()
    assert done.record["ending"] == "complete"
    assert len({line["answered_by"] for line in done.predictions(0)}) == 1


def test_replies_that_name_another_model_end_it(optimize, document) -> None:
    with serving(Weights(honest=60)) as wire:
        document["model"] = {"engine": "vllm", "endpoints": [wire.address]}
        done = optimize()
    assert done.record["ending"] == "failed"
    assert "replies come from another, not from tiny" in done.record["why"]


def test_weights_that_are_swapped_meanwhile_end_it(optimize, document) -> None:
    with serving(Weights(swapped=60)) as wire:
        document["model"] = {"engine": "vllm", "endpoints": [wire.address]}
        done = optimize()
    assert done.record["ending"] == "failed"
    assert "another model answers now than at the start" in done.record["why"]
    assert "org/second" in done.record["why"]


def test_an_optimization_is_known_by_the_weights_of_its_models(document, medexam, tmp_path) -> None:
    def weights(place, last=b"a"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / "config.json").write_text('{"model_type": "llama"}')
        (folder / "model.safetensors").write_bytes(b"0" * 2_000_000 + last)
        return str(folder)

    def identity(path, writer):
        optimizer = {"kind": "copro", "prompt_model": {"path": writer}}
        spec = {**document, "model": {"engine": "embedded", "path": path}, "optimizer": optimizer}
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
        return json.loads(medexam("optimize", "spec.yaml", "--plan", "--json")[1])["id"].split("-")[-1]

    known = identity(weights("one"), weights("writer"))
    assert identity(weights("moved/elsewhere"), weights("writers/copy")) == known
    other = weights("other", b"b")
    assert len({known, identity(other, weights("writer2")), identity(weights("one2"), other)}) == 3


def test_a_script_elsewhere_goes_on_and_a_changed_one_is_another(optimize, tmp_path) -> None:
    done = optimize({"optimizer.kind": "labeled"})
    moved = (tmp_path / "replies.yaml").rename(tmp_path / "moved.yaml")
    assert vars(optimize({"optimizer.kind": "labeled", "model.path": str(moved)})) == vars(done)
    (tmp_path / "replies.yaml").write_text('"*": "{Answer: 2}"')
    assert optimize({"optimizer.kind": "labeled"}).folder != done.folder


@pytest.mark.parametrize(*read_table("refused_optimizations"))
def test_what_cannot_be_optimized_is_said_before_anything_is_asked(
    optimize, document, tmp_path, overrides, said
) -> None:
    spec = document | {name: overrides.pop(name) for name in ("optimizer", "matrix") if name in overrides}
    with pytest.raises(SpecError, match=said):
        optimize(overrides, {name: value for name, value in spec.items() if value is not None})
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_examples_of_ones_own_hold_no_question_that_is_tested_or_chooses(optimize, document, tmp_path, split) -> None:
    question = package.load_questions("headqa_sample", split=split)[0]
    options = [option.text for option in question.options]
    example = {"stem": question.stem, "discipline": "biology", "options": options, "answer": 1}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"en": [example]}))
    program = {"kind": "few_shot", "examples": str(tmp_path / "mine.yaml")}
    with pytest.raises(SpecError, match=f"mine.yaml: demonstration examples/1 is nearly {question.key}, which"):
        optimize(spec={**document, "program": program})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda state: state["metadata"]["medexam"].update(form="angles"), "form is 'angles'"),
        (lambda state: state["metadata"]["medexam"].update(language="es"), "language is 'es'"),
        (lambda state: state.update(reason=state["answer"]), "they are different programs"),
        (lambda state: state["answer"]["signature"]["fields"].pop(), "signature of answer"),
        (lambda state: state["answer"]["demos"][0]["question"].pop("stem"), "damaged"),
        (lambda state: state["answer"]["demos"][0].update(answer=9), "is not an option"),
        (lambda state: state["answer"].pop("signature"), "damaged"),
        (lambda state: state.pop("metadata"), "no program of DSPy's"),
    ],
)
def test_a_foreign_or_corrupt_program_is_refused(finished, document, tmp_path, change, said) -> None:
    state = finished("labeled").program(1)
    change(state)
    (tmp_path / "program.json").write_text(json.dumps(state))
    with pytest.raises(SpecError, match=said):
        package.plan(document, program__load=str(tmp_path / "program.json"), runs_dir=tmp_path / "runs")


def test_a_program_that_is_missing_or_of_another_kind_or_shows_what_is_asked_is_refused(
    finished, document, tmp_path
) -> None:
    done = finished("labeled")
    for settings, said in (
        ({"program__load": str(tmp_path / "nowhere")}, r"no program\.json"),
        ({"program__load": str(done.folder), "program__kind": "few_shot"}, "kind is 'zero_shot'"),
        ({"program__load": str(done.place(1)), "dataset__split": "train"}, "from an exam that is asked"),
    ):
        with pytest.raises(SpecError, match=said):
            package.plan(document, **settings, runs_dir=tmp_path / "runs")
