"""Optimization with a model in this process: few questions, real demonstrations, probabilities as of transformers."""

import json

import pytest

from medexam.experiments import Runner, plan_experiment, plan_optimization
from medexam.experiments.optimize.optimizer import optimize
from watching import Silent, Trials

pytestmark = pytest.mark.model
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def document(tiny_llama):
    return {
        "name": "optimized",
        "dataset": {"name": "headqa_sample", "split": "test", "limit": 4},
        "model": {"engine": "embedded", "path": str(tiny_llama), "dtype": "float32"},
        "program": {"kind": "zero_shot", "answer_format": "guided"},
        "optimizer": {
            "kind": "bootstrap",
            "metric": "log_probability",
            "validation": {"split": "dev", "limit": 4},
            "demos": 1,
            "attempts": 6,
        },
    }


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("optimized")


@pytest.fixture(scope="module")
def done(document, runs_dir):
    return optimize(plan_optimization(document, {}, runs_dir=runs_dir), Trials())


def _predictions(done, trial):
    lines = (done.folder.programs / trial.digest / "predictions.jsonl").read_text().splitlines()
    return {line["question"]: line for line in map(json.loads, lines)}


def test_the_program_that_is_kept_is_the_likeliest(done) -> None:
    assert len(done.trials) == 2
    assert done.best.score == max(trial.score for trial in done.trials)
    assert all(trial.score < 0 for trial in done.trials)
    assert (done.folder.path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_probabilities_are_those_of_the_model(done, document, tiny_llama, runs_dir) -> None:
    """The scores of the program as written, computed again from its rendered prompt with transformers alone."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    plan = plan_optimization(document, {}, runs_dir=runs_dir)
    tokenizer = AutoTokenizer.from_pretrained(tiny_llama)
    model = AutoModelForCausalLM.from_pretrained(tiny_llama, dtype=torch.float32)
    program = plan.validation.program
    said = _predictions(done, done.trials[0])
    for question in plan.validation.question_set.questions:
        call = next(program.steps(question))
        turns = program.adapter.format(call.predictor.signature, [], call.inputs)
        text = tokenizer.apply_chat_template(turns[:-1], tokenize=False, add_generation_prompt=True)
        tokens = tokenizer(text + turns[-1]["content"], return_tensors="pt", add_special_tokens=False)
        with torch.no_grad():
            scores = model(**tokens).logits[0, -1].double().log_softmax(-1)
        for number, score in said[question.key]["option_scores"].items():
            (token,) = tokenizer.encode(number, add_special_tokens=False)
            assert float(scores[token]) == pytest.approx(score, abs=2e-3)


def test_the_loaded_program_answers_as_its_trial_did(done, document, runs_dir) -> None:
    trial = done.trials[1]
    overrides = {"program.load": str(done.folder.programs / trial.digest), "dataset.split": "dev"}
    (run,), _ = Runner(plan_experiment(document, overrides, runs_dir=runs_dir), Silent()).run()
    answers = {key: prediction.answer for key, prediction in run.folder.read_predictions().items()}
    assert answers == {key: line["answer"] for key, line in _predictions(done, trial).items()}
