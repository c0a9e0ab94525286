"""Optimizers that rewrite instructions, with a scripted model that writes them."""

import json

import pytest
import yaml

from medexam.experiments.optimize.optimization import Ending

FIELDS = {
    "proposed_instruction": "Answer as the examiner would.",
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
    assert done.ending is Ending.COMPLETE, done.why
    assert len(done.trials) > 1
    words = {
        json.loads((done.folder.programs / trial.digest / "program.json").read_text())["respond"]["signature"][
            "instructions"
        ]
        for trial in done.trials
    }
    assert "Answer as the examiner would." in words
    assert done.beside.calls > 0


def test_reflection_writes_instructions_from_feedback(run_optimizer, tmp_path) -> None:
    path = tmp_path / "reflection.yaml"
    path.write_text(yaml.safe_dump({"*": "```\nAnswer as the examiner would.\n```"}))
    done, _ = run_optimizer(
        {"optimizer.kind": "gepa", "optimizer.prompt_model": {"engine": "scripted", "path": str(path)}},
    )
    assert done.ending is Ending.COMPLETE, done.why
    assert done.trials


def test_a_model_that_cannot_write_them_is_named(run_optimizer, document) -> None:
    done, _ = run_optimizer({"optimizer.kind": "copro"})
    assert done.ending is Ending.FAILED
    assert "optimizer.prompt_model" in (done.why or "")
    assert len(done.trials) == 1
