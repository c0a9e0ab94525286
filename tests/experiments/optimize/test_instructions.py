"""Optimizers that rewrite instructions, with a scripted model that writes them."""

import json

import pytest
import yaml

from medexam.experiments.optimize.optimization import OptimizationEnding
from medexam.serve import ScriptedEngine, ScriptedReply

WRITTEN = "Answer as the examiner would."

FIELDS = {
    "proposed_instruction": WRITTEN,
    "proposed_prefix_for_output_field": "Answer:",
    "observations": "Medical questions.",
    "summary": "Medical exams.",
    "program_description": "It answers questions.",
    "module_description": "It answers.",
}


@pytest.fixture
def writer(tmp_path):
    """The path of a script that fills every field that DSPy's proposers ask for."""
    text = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in FIELDS.items())
    path = tmp_path / "writer.yaml"
    path.write_text(yaml.safe_dump({"*": f"{text}\n\n[[ ## completed ## ]]"}))
    return {"engine": "scripted", "path": str(path)}


@pytest.mark.parametrize("kind", ["copro", "mipro"])
def test_instructions_are_written_by_the_prompt_model_and_tried(run_optimizer, writer, kind) -> None:
    if kind == "mipro":
        pytest.importorskip("optuna")
    done, _ = run_optimizer({"optimizer.kind": kind, "optimizer.prompt_model": writer, "optimizer.rounds": 1})
    assert done.ending is OptimizationEnding.COMPLETE, done.why
    assert len(done.trials) > 1
    words = {
        json.loads((done.folder.programs / trial.digest / "program.json").read_text())["respond"]["signature"][
            "instructions"
        ]
        for trial in done.trials
    }
    assert WRITTEN in words
    assert done.beside.calls > 0


def test_reflection_writes_instructions_that_become_trials(run_optimizer, document, monkeypatch, sample, key) -> None:
    class Model(ScriptedEngine):
        """Answers right once the instructions say how."""

        def answer(self, dialogue):
            text = dialogue.messages[-1]["content"]
            found = [one for one in sample.questions if one.stem in text]
            right = any(WRITTEN in message["content"] for message in dialogue.messages)
            reply = f"{{Answer: {key[found[-1].key].number if right else 9}}}" if found else "{}"
            self._replies = {"*": ScriptedReply(text=reply)}
            return super().answer(dialogue)

    waiting = [Model({"*": ""}), ScriptedEngine({"*": json.dumps({"new_instruction": WRITTEN})})]

    async def build_engine(*_, **__):
        return waiting.pop(0)

    monkeypatch.setattr("medexam.experiments.optimize.optimizer.build_engine", build_engine)
    writer = {"engine": "scripted", "path": document["model"]["path"], "name": "writer"}
    done, _ = run_optimizer({"optimizer.kind": "gepa", "optimizer.prompt_model": writer})
    assert done.ending is OptimizationEnding.COMPLETE, done.why
    assert [(trial.number, trial.name) for trial in done.trials] == [(0, "as written"), (1, "gepa")]
    assert [trial.right for trial in done.trials] == [0, 24]
    state = json.loads((done.folder.path / "program.json").read_text())
    assert state["respond"]["signature"]["instructions"] == WRITTEN
    assert done.trials[1].calls == 24


def test_a_model_that_cannot_write_them_is_named(run_optimizer, document) -> None:
    done, _ = run_optimizer({"optimizer.kind": "copro"})
    assert done.ending is OptimizationEnding.FAILED
    assert "optimizer.prompt_model" in (done.why or "")
    assert len(done.trials) == 1
