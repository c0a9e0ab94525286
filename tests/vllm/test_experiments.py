"""Whole experiments on a live vLLM server: every prompting strategy, free and guided, in both languages."""

import pytest

import medexam
from medexam.predictions import Status

pytestmark = pytest.mark.vllm
QUESTIONS = 8


@pytest.fixture
def run(endpoint, tmp_path):
    """`run(program, limit=8, language="en")` -> the run."""

    def call(program, limit=QUESTIONS, language="en"):
        (found,) = medexam.run(
            {
                "name": "live",
                "dataset": {"name": "headqa_sample", "limit": limit, "language": language},
                "model": {"engine": "vllm", "endpoints": [endpoint]},
                "program": program,
            },
            runs_dir=tmp_path / "runs",
            track=False,
            progress=False,
        )
        assert found.complete
        return found

    return call


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize(
    ("kind", "answer_form"),
    [("zero_shot", "braces"), ("zero_shot", "angles"), ("few_shot", "braces"), ("chain_of_thought", "braces")],
)
def test_guided_runs_leave_nothing_unanswered(run, kind, answer_form, language) -> None:
    program = {"kind": kind, "answer_format": "guided", "answer_form": answer_form, "max_tokens": 32}
    found = run(program, language=language).predictions.values()
    assert len(found) == QUESTIONS
    assert {one.status for one in found} == {Status.ANSWERED}
    assert all(one.prompt_tokens and one.model for one in found)
    if kind == "chain_of_thought":
        assert any(one.rationale for one in found)


@pytest.mark.parametrize("kind", ["zero_shot", "few_shot", "chain_of_thought"])
def test_free_runs_keep_every_reply(run, kind) -> None:
    found = run({"kind": kind, "max_tokens": 24}).predictions.values()
    assert len(found) == QUESTIONS
    assert all(one.reply and one.completion_tokens <= 24 for one in found)
    assert {one.finish_reason for one in found} <= {"stop", "length"}


def test_likelihoods_leave_nothing_unanswered(run) -> None:
    found = run({"kind": "likelihood"}, limit=12)
    assert {one.status for one in found.predictions.values()} == {Status.ANSWERED}


def test_a_prompt_longer_than_the_context_leaves_its_question_unanswered(run, tmp_path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: '" + "very " * 5000 + "long. $form'}", encoding="utf-8")
    found = run({"kind": "zero_shot", "prompt": str(words)}, limit=3).predictions.values()
    assert {one.reason for one in found} == {"context_overflow"}
