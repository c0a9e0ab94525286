"""Whole experiments on a model in this process."""

import os
import shutil

import pytest

from medexam import Question, load_questions
from medexam.experiments import Runner, plan_experiment
from medexam.experiments.store.stored_run import StoredRun
from watching import Silent

pytestmark = pytest.mark.model
QUESTIONS = 4


def _questions() -> dict[str, Question]:
    questions = load_questions("headqa_sample", limit=QUESTIONS)
    return {question.key: question for question in questions}


def _run(document, runs_dir) -> dict[tuple[str, str], StoredRun]:
    stored, interrupted = Runner(plan_experiment(document, {}, runs_dir=runs_dir), Silent()).run()
    assert not interrupted
    return {(run.program, run.record.cell.dataset.language): run for run in stored}


@pytest.fixture(scope="module")
def runs(tiny_llama, tmp_path_factory):
    """One experiment with every prompting strategy, by program and language."""
    document = {
        "name": "embedded",
        "dataset": {"name": "headqa_sample", "limit": QUESTIONS},
        "model": {"engine": "embedded", "path": str(tiny_llama), "dtype": "float32"},
        "matrix": {
            "program": [
                {"kind": "zero_shot", "max_tokens": 16},
                {"kind": "zero_shot", "answer_format": "guided"},
                {"kind": "few_shot", "max_tokens": 16},
                {"kind": "few_shot", "answer_format": "guided", "answer_form": "angles"},
                {"kind": "chain_of_thought", "max_tokens": 24},
                {"kind": "chain_of_thought", "answer_format": "guided", "max_tokens": 24},
            ],
            "dataset.language": ["en", "es"],
        },
    }
    return _run(document, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def smollm2_runs(tmp_path_factory):
    """The default model, asked by a dialogue without and with examples, and read as plain text."""
    document = {
        "name": "smollm2",
        "dataset": {"name": "headqa_sample", "limit": 2},
        "model": {"engine": "embedded"},
        "matrix": {
            "program": [
                *({"kind": kind, "max_tokens": 12} for kind in ("zero_shot", "few_shot")),
                {"kind": "likelihood"},
            ]
        },
    }
    return _run(document, tmp_path_factory.mktemp("smollm2"))


def test_a_folder_is_the_model_that_it_holds(tiny_llama, tmp_path, monkeypatch) -> None:
    """One byte of a deep layer makes another run; another place does not."""
    folder = shutil.copytree(tiny_llama, tmp_path / "model")
    document = {
        "name": "weights",
        "dataset": {"name": "headqa_sample"},
        "model": {"engine": "embedded", "path": str(folder)},
        "program": {"kind": "zero_shot", "answer_format": "guided"},
    }

    def run(limit: int) -> StoredRun:
        plan = plan_experiment(document, {"dataset.limit": limit}, runs_dir=tmp_path / "runs")
        (stored,), _ = Runner(plan, Silent()).run()
        return stored

    first = run(3)
    moved = folder.rename(tmp_path / "renamed")
    monkeypatch.chdir(tmp_path)
    document["model"]["path"] = "renamed"
    on = run(4)
    assert (on.folder, on.metrics.n, on.mixed) == (first.folder, 4, False)
    weights = next(moved.glob("*.safetensors"))
    with weights.open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        last = stream.read(1)[0]
        stream.seek(-1, os.SEEK_END)
        stream.write(bytes([last ^ 1]))
    changed = run(4)
    assert changed.folder != first.folder
    prints = {one.answered_by for stored in (on, changed) for one in stored.folder.read_predictions().values()}
    assert len(prints) == 2


def test_every_cell_is_complete(runs) -> None:
    assert len(runs) == 12
    assert {run.status for run in runs.values()} == {"complete"}
    assert {run.metrics.n for run in runs.values()} == {QUESTIONS}


def test_guided_leaves_nothing_unanswered(runs) -> None:
    guided = {key: run for key, run in runs.items() if "guided" in key[0]}
    assert len(guided) == 6
    assert {run.metrics.unanswered for run in guided.values()} == {0}


def test_four_option_questions_are_never_answered_5(runs) -> None:
    offered = {key: len(question.options) for key, question in _questions().items()}
    assert set(offered.values()) == {4, 5}
    for (program, _), run in runs.items():
        if "guided" in program:
            answers = {key: prediction.answer for key, prediction in run.folder.read_predictions().items()}
            assert answers.keys() == offered.keys()
            assert all(1 <= answer <= offered[key] for key, answer in answers.items())


def test_free_replies_are_kept_word_for_word(runs) -> None:
    run = runs[("zero_shot", "en")]
    predictions = run.folder.read_predictions().values()
    assert all(p.reply for p in predictions)
    assert all(p.completion_tokens <= 16 for p in predictions)


def test_the_examples_teach_the_format(smollm2_runs) -> None:
    """SmolLM2 writes no parsable answer unless it is shown some, so the few-shot turns must reach it as turns."""
    zero_shot, few_shot, likelihood = (run.metrics.unanswered for run in smollm2_runs.values())
    assert few_shot < zero_shot
    assert likelihood == 0


def test_what_really_ran_is_recorded(smollm2_runs) -> None:
    engine = smollm2_runs["zero_shot", "en"].environment["engine"]
    assert engine["engine"] == "embedded"
    assert engine["model"] == "SmolLM2-135M-Instruct"
    assert engine["revision"]
    assert len(engine["chat_template"]) == 64
    assert engine["system_turn"] == "kept"
