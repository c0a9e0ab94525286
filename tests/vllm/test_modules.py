"""A module of the user's own on a live server: its calls travel with the others', and its choices are legal."""

import pytest

from medexam.experiments import Runner, plan_experiment
from medexam.predictions import Status
from watching import Silent

pytestmark = pytest.mark.vllm
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
    """`run("Argue", answer_format="guided")` -> the predictions of twenty sample questions."""
    (tmp_path / "mine.py").write_text(MODULE)

    def call(name, **program):
        document = {
            "name": "modules",
            "dataset": {"name": "headqa_sample", "limit": 20},
            "model": {"engine": "vllm", "endpoints": [endpoint]},
            "program": {"kind": f"{tmp_path / 'mine.py'}:{name}" if name[0].isupper() else name, **program},
        }
        (stored,), _ = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), Silent()).run()
        return stored.folder.read_predictions()

    return call


def test_each_output_is_written_and_each_choice_is_legal(run) -> None:
    for said in run("Argue", answer_format="guided").values():
        assert said.status is Status.ANSWERED
        argument, answer = said.generations
        assert 0 < argument.completion_tokens <= 24
        assert answer.text == str(said.answer)


def test_the_likeliest_choice_is_what_a_guided_answer_chooses(run) -> None:
    likely = run("Likely", logprobs=True)
    guided = run("signature", signature="question, options -> answer: int", answer_format="guided")
    # Of options whose probabilities are nearly equal, batches of another make-up may choose another one.
    assert sum(likely[key].answer == said.answer for key, said in guided.items()) >= 18
