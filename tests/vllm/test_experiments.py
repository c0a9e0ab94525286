"""Whole experiments on a live vLLM server: prompting strategies free and guided, and modules of the user's own."""

import pytest

import medexam
from medexam.predictions import Status

pytestmark = pytest.mark.vllm
QUESTIONS = 8
MODULE = """
import dspy
from medexam.programs import OptionProbabilities


class Argue(dspy.Module):
    def __init__(self):
        super().__init__()
        self.argue = dspy.Predict("question, options -> argument", max_tokens=24)
        self.judge = dspy.Predict("question, options, argument -> answer: int")

    def forward(self, stem, options):
        argument = self.argue(question=stem, options=options).argument
        return self.judge(question=stem, options=options, argument=argument)


class Likely(dspy.Module):
    def __init__(self):
        super().__init__()
        self.weigh = OptionProbabilities("question, options -> answer: int")

    async def aforward(self, stem, options):
        return await self.weigh.acall(question=stem, options=options)
"""


@pytest.fixture
def run(endpoint, tmp_path):
    """`run(program, limit=8, language="en")` -> the run."""
    (tmp_path / "mine.py").write_text(MODULE)

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
    assert sum(found.stored.environment["engine"]["details"]["read_by"].values()) == 12


def test_a_prompt_longer_than_the_context_leaves_its_question_unanswered(run, tmp_path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: '" + "very " * 5000 + "long. $form'}", encoding="utf-8")
    found = run({"kind": "zero_shot", "prompt": str(words)}, limit=3).predictions.values()
    assert {one.reason for one in found} == {"context_overflow"}


def test_each_output_of_a_module_is_written_and_each_choice_is_legal(run, tmp_path) -> None:
    found = run({"kind": f"{tmp_path / 'mine.py'}:Argue", "answer_format": "guided"}, limit=20).predictions
    for said in found.values():
        assert said.status is Status.ANSWERED
        argument, answer = said.generations
        assert 0 < argument.completion_tokens <= 24
        assert answer.text == str(said.answer)


def test_the_likeliest_choice_is_what_a_guided_answer_chooses(run, tmp_path) -> None:
    likely = run({"kind": f"{tmp_path / 'mine.py'}:Likely", "logprobs": True}, limit=20).predictions
    signature = {"kind": "signature", "signature": "question, options -> answer: int", "answer_format": "guided"}
    guided = run(signature, limit=20).predictions
    # Of options whose probabilities are nearly equal, batches of another make-up may choose another one.
    assert sum(likely[key].answer == said.answer for key, said in guided.items()) >= 18
