"""Whole experiments on a model in this process: a drawn one, and SmolLM2 where what it says matters."""

import json
import math
import os
import shutil
from pathlib import Path

import pytest
import yaml
from engine_calls import ask, reply_blocking

import medexam
from medexam.serve import EmbeddedEngine
from medexam.specs import ModelSpec
from one_question import SHOWN

pytestmark = pytest.mark.model
CORPUS = Path(__file__).parents[1] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"
QUESTIONS = 4
GUIDED = {"answer_format": "guided"}


def run(model, runs_dir, limit=QUESTIONS, **parts):
    """Run programs over sample questions; gives the runs."""
    dataset = {"name": "headqa_sample", "limit": limit}
    model = {"engine": "embedded", "dtype": "float32", **model}
    spec = {"name": "embedded", "dataset": dataset, "model": model, **parts}
    return medexam.run(spec, runs_dir=runs_dir, progress=False, track=False)


def environment_of(done):
    return json.loads((done.folder / "environment.json").read_text())["engine"]


@pytest.fixture(scope="module")
def runs(tiny_llama, tmp_path_factory):
    """The runs of seven programs on a drawn model."""
    folder = tmp_path_factory.mktemp("runs")
    programs = [
        {"kind": "zero_shot", "max_tokens": 16},
        {"kind": "zero_shot", **GUIDED},
        {"kind": "few_shot", **GUIDED, "answer_form": "angles"},
        {"kind": "chain_of_thought", **GUIDED, "max_tokens": 24},
        {"kind": "likelihood", "read": "label", "orders": "cyclic"},
        {"kind": "likelihood", "context": "retrieved", "retriever": {"kind": "bm25", "corpus": str(CORPUS)}},
        {"kind": "likelihood", "chat_template": True, "abstain_below": 0.99},
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDEXAM_CACHE", str(folder / "cache"))
        return run({"path": str(tiny_llama)}, folder / "runs", matrix={"program": programs})


def test_every_run_is_complete_and_a_choice_is_always_an_option_of_its_question(runs) -> None:
    assert all(done.complete and done.n == QUESTIONS for done in runs)
    offered = {
        question.key: len(question.options) for question in medexam.load_questions("headqa_sample", limit=QUESTIONS)
    }
    assert set(offered.values()) == {4, 5}
    for done in runs[1:6]:
        answers = {key: said.answer for key, said in done.predictions.items()}
        assert answers.keys() == offered.keys()
        assert all(1 <= answer <= offered[key] for key, answer in answers.items())
    assert runs[6].metrics.unanswered > 0, "it abstains"
    assert all(said.reply and said.completion_tokens <= 16 for said in runs[0].predictions.values())


def test_orders_are_kept_and_audited_and_passages_stand_before_the_stem(runs) -> None:
    for said in runs[4].predictions.values():
        assert said.read_by in ("echo", "label")
        assert len(said.order_scores) == len(said.option_scores)
        assert all(score < 0 for score in said.option_scores.values())
        assert math.fsum(said.option_probabilities.values()) == pytest.approx(1.0)
        assert 0 < said.label_mass <= 1
    scores = runs[4].metrics.evidence["option_scores"]
    assert 0 <= scores["flip_rate"] <= 1
    assert scores["by_shown_position"]
    text = (runs[4].folder / "report.md").read_text()
    assert all(f"## {title}" in text for title in ("Calibration", "Position"))
    assert sum(bool(said.passages) for said in runs[5].predictions.values()) >= QUESTIONS - 1


def test_a_folder_is_the_model_that_it_holds(tiny_llama, tmp_path, monkeypatch) -> None:
    """One byte of a deep layer makes another run; another place does not."""
    folder = shutil.copytree(tiny_llama, tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    guided = {"program": {"kind": "zero_shot", **GUIDED}}
    (first,) = run({"path": str(folder)}, tmp_path / "runs", 3, **guided)
    moved = folder.rename(tmp_path / "renamed")
    (on,) = run({"path": "renamed"}, tmp_path / "runs", 4, **guided)
    assert (on.id, on.n) == (first.id, 4)
    with next(moved.glob("*.safetensors")).open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        last = stream.read(1)[0]
        stream.seek(-1, os.SEEK_END)
        stream.write(bytes([last ^ 1]))
    (changed,) = run({"path": "renamed"}, tmp_path / "runs", 4, **guided)
    assert changed.id != first.id
    assert len({said.answered_by for done in (on, changed) for said in done.predictions.values()}) == 2


def test_log_probabilities_without_a_chat_template_are_those_of_the_same_weights_with_one(
    base_model, tiny_llama, tmp_path
) -> None:
    found = [run({"path": str(path)}, tmp_path, 2, program="likelihood")[0] for path in (base_model, tiny_llama)]
    scores = [{key: said.option_scores for key, said in done.predictions.items()} for done in found]
    assert scores[0] == scores[1]
    assert [environment_of(done)["chat_template"] is None for done in found] == [True, False]


@pytest.mark.parametrize("program", [{"kind": "few_shot", **GUIDED}, {"kind": "likelihood", "chat_template": True}])
def test_what_needs_a_chat_template_is_refused_before_anything_is_asked(base_model, tmp_path, program) -> None:
    said = "which has no chat template and takes no dialogue: name an instruction-tuned model, or have it read plain"
    with pytest.raises(medexam.MedExamError, match=said):
        run({"path": str(base_model)}, tmp_path, program=program)


MODULE = '''
import dspy


class Mine(dspy.Module):
    """The prompt as messages, without a signature and an adapter."""

    def forward(self, stem: str, options: str) -> dspy.Prediction:
        instructions = "Answer the exam question. Reply in this form: {Answer: [number]}."
        turns = [{"role": "system", "content": instructions}, {"role": "user", "content": f"{stem}\\n{options}"}]
        return dspy.Prediction(answer=dspy.settings.lm(messages=turns, max_tokens=8)[0])
'''


def test_a_module_of_ones_own_asks_as_zero_shot_does_with_the_same_prompt(tiny_llama, tmp_path) -> None:
    words = {"en": {"number": "[number]", "zero_shot": "Answer the exam question. Reply in this form: $form."}}
    (tmp_path / "words.yaml").write_text(yaml.safe_dump(words))
    (tmp_path / "mine.py").write_text(MODULE)
    ours = {"kind": "zero_shot", "max_tokens": 8, "prompt": str(tmp_path / "words.yaml")}
    shipped, own = run(
        {"path": str(tiny_llama)}, tmp_path, 8, matrix={"program": [ours, f"{tmp_path / 'mine.py'}:Mine"]}
    )
    calls = [{key: one.calls[0] for key, one in done.predictions.items()} for done in (shipped, own)]
    first, second = ({key: (one.messages, one.text, one.prompt_tokens) for key, one in each.items()} for each in calls)
    assert first == second
    assert len({text for _, text, _ in first.values()}) >= 3, "the model writes"


def test_thinking_that_is_cut_off_is_reported_or_closed(thinking_model, tmp_path) -> None:
    model = {"path": str(thinking_model), "thinking": "on", "max_tokens": 8}
    cut, closed = run(model, tmp_path, 2, matrix={"program.answer_after_budget": [False, True]})
    counts = [(one.unanswered, one.completion_tokens, one.thinking_tokens) for one in (cut.metrics, closed.metrics)]
    assert counts == [(2, 16, 16), (0, 18, 16)]
    assert {str(said.reason) for said in cut.predictions.values()} == {"truncated_thinking"}
    assert all("</think>\n\n{Answer: " in said.reply for said in closed.predictions.values())
    assert cut.id != closed.id
    assert "Thinking tokens" in (cut.folder / "report.md").read_text()


def test_a_plain_text_is_continued_as_transformers_does_until_a_stop(base_model) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base_model)
    model = AutoModelForCausalLM.from_pretrained(base_model, dtype=torch.float32)
    ids = tokenizer(SHOWN, return_tensors="pt").input_ids
    with torch.inference_mode():
        written = model.generate(ids, max_new_tokens=12, do_sample=False, pad_token_id=tokenizer.pad_token_id)
    whole = tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True)
    engine = EmbeddedEngine(ModelSpec(path=base_model, dtype="float32"))

    def continue_text(**sampling) -> str:
        return reply_blocking(engine, ask(SHOWN, more={"plain": True}, max_tokens=12, **sampling)).words

    assert continue_text() == whole
    end = whole.split()[-1]
    assert continue_text(stop=(end,)) == whole.partition(end)[0]


@pytest.mark.nightly
def test_the_examples_teach_the_format(tmp_path) -> None:
    """SmolLM2 writes no parsable answer unless it is shown some, so the few-shot turns must reach it as turns."""
    programs = [*({"kind": kind, "max_tokens": 12} for kind in ("zero_shot", "few_shot")), {"kind": "likelihood"}]
    zero_shot, few_shot, likelihood = run({}, tmp_path, 2, matrix={"program": programs})
    assert few_shot.metrics.unanswered < zero_shot.metrics.unanswered
    assert likelihood.metrics.unanswered == 0
    engine = environment_of(zero_shot)
    assert (engine["engine"], engine["model"], engine["system_turn"]) == ("embedded", "SmolLM2-135M-Instruct", "kept")
    assert (bool(engine["revision"]), len(engine["chat_template"])) == (True, 64)
