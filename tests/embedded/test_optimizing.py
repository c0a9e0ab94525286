"""Optimization with a model in this process: few questions, real demonstrations, probabilities as of transformers."""

import json

import pytest

import medexam

pytestmark = pytest.mark.model
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def spec(tiny_llama):
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
def done(spec, tmp_path_factory):
    return medexam.optimize(spec, runs_dir=tmp_path_factory.mktemp("optimized"), progress=False, track=False)


def said_in(done, trial):
    lines = (done.folder / "trials" / trial.digest / "predictions.jsonl").read_text().splitlines()
    return {line["question"]: line for line in map(json.loads, lines)}


def test_the_program_that_is_kept_is_the_likeliest(done) -> None:
    trials = done.trials
    assert len(trials) == 2
    assert done.best.score == max(trial.score for trial in trials)
    assert all(trial.score < 0 for trial in trials)


def test_probabilities_are_those_of_transformers_on_the_prompt_that_a_plan_shows(done, spec, tiny_llama) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    plain = {name: part for name, part in spec.items() if name != "optimizer"}
    tokenizer = AutoTokenizer.from_pretrained(tiny_llama)
    model = AutoModelForCausalLM.from_pretrained(tiny_llama, dtype=torch.float32)
    turns = medexam.plan(plain, dataset__split="dev", limit=1, runs_dir=done.folder).cells[0]["prompt"]
    question = medexam.load_questions("headqa_sample", split="dev", limit=1)[0]
    text = tokenizer.apply_chat_template(turns[:-1], tokenize=False, add_generation_prompt=True)
    tokens = tokenizer(text + turns[-1]["content"], return_tensors="pt", add_special_tokens=False)
    with torch.no_grad():
        scores = model(**tokens).logits[0, -1].double().log_softmax(-1)
    found = said_in(done, done.trials[0])[question.key]["option_scores"]
    assert len(found) >= 4
    for number, score in found.items():
        (token,) = tokenizer.encode(number, add_special_tokens=False)
        assert float(scores[token]) == pytest.approx(score, abs=2e-3)


def test_the_loaded_program_answers_as_its_trial_did(done, spec) -> None:
    trial = done.trials[1]
    settings = {"program__load": str(done.folder / "trials" / trial.digest), "dataset__split": "dev"}
    plain = {name: part for name, part in spec.items() if name != "optimizer"}
    (run,) = medexam.run(plain, **settings, runs_dir=done.folder.parent, progress=False, track=False)
    answers = {key: said.answer for key, said in run.predictions.items()}
    assert answers == {key: line["answer"] for key, line in said_in(done, trial).items()}
