"""Whole experiments on a live vLLM server: every prompting strategy, free and guided, in both languages."""

import os

import pytest

from medexam.experiments import Runner, plan_experiment
from watching import Silent

ENDPOINT = os.environ.get("MEDEXAM_VLLM_ENDPOINT")
QUESTIONS = 8

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(ENDPOINT is None, reason="MEDEXAM_VLLM_ENDPOINT names no vLLM server"),
]


def _run(tmp_path, program, **changes):
    document = {
        "name": "live",
        "dataset": {"name": "headqa_sample", "limit": QUESTIONS},
        "model": {"engine": "vllm", "endpoints": [ENDPOINT]},
        "program": program,
        "matrix": {"dataset.language": ["en", "es"]},
        **changes,
    }
    runs, interrupted = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), Silent()).run()
    assert not interrupted
    return runs


@pytest.mark.parametrize(
    ("kind", "answer_form"),
    [("zero_shot", "braces"), ("zero_shot", "angles"), ("few_shot", "braces"), ("chain_of_thought", "braces")],
)
def test_guided_runs_leave_nothing_unanswered(tmp_path, kind, answer_form) -> None:
    program = {"kind": kind, "answer_format": "guided", "answer_form": answer_form, "max_tokens": 32}
    for run in _run(tmp_path, program):
        assert run.status == "complete"
        assert run.metrics.n == QUESTIONS
        assert run.metrics.unanswered == 0
        engine = run.environment["engine"]
        assert (engine["engine"], engine["guided_by"]) == ("vllm", "prefill")
        assert engine["server_version"]
        assert engine["chat_template"]
        predictions = run.folder.read_predictions().values()
        assert all(p.prompt_tokens and p.model == engine["model"] for p in predictions)
        if kind == "chain_of_thought":
            assert any(p.rationale for p in predictions)


@pytest.mark.parametrize("kind", ["zero_shot", "few_shot", "chain_of_thought"])
def test_free_runs_keep_every_reply(tmp_path, kind) -> None:
    for run in _run(tmp_path, {"kind": kind, "max_tokens": 24}):
        assert run.status == "complete"
        assert run.metrics.n == QUESTIONS
        predictions = run.folder.read_predictions().values()
        assert all(p.reply and p.completion_tokens <= 24 for p in predictions)
        assert {p.finish_reason for p in predictions} <= {"stop", "length"}


def test_a_prompt_longer_than_the_context_leaves_its_question_unanswered(tmp_path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: '" + "very " * 5000 + "long. $form'}", encoding="utf-8")
    program = {"kind": "zero_shot", "prompt": str(words)}
    (run,) = _run(tmp_path, program, matrix={}, dataset={"name": "headqa_sample", "limit": 3})
    assert run.status == "complete"
    assert {p.reason for p in run.folder.read_predictions().values()} == {"context_overflow"}
