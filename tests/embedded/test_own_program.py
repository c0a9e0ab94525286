"""A module as a user writes it, beside the program that ships: the same prompt of the same model is the same answer."""

import json
from pathlib import Path

import pytest

from medexam import Question, load_questions
from medexam.experiments import Runner, plan_experiment
from watching import Silent

pytestmark = pytest.mark.model
QUESTIONS = 40
WORDS = """\
en:
  number: "[number]"
  zero_shot: "Answer the exam question. Reply in this form: $form."
"""
MODULE = '''
import dspy
from dspy.lm15 import Config, Message, Request


class Mine(dspy.Module):
    """The prompt as DSPy's own request, without a signature and an adapter."""

    def forward(self, stem: str, options: str, option_numbers: list[int]) -> dspy.Prediction:
        lm = dspy.settings.lm
        choice = {"choice": [str(number) for number in option_numbers]}
        request = Request(
            model=lm.model,
            system="Answer the exam question. Reply in this form: {Answer: [number]}.",
            messages=(Message.user(f"{stem}\\n{options}"), Message.assistant("{Answer: ")),
            config=Config(temperature=0.0, seed=0, max_tokens=8, extensions=choice),
        )
        return dspy.Prediction(answer=lm(request).message.text)
'''


def _row(question: Question) -> str:
    options = [option.text for option in question.options]
    return json.dumps({"id": question.key, "stem": question.stem, "options": options, "answer": 1})


def test_questions_are_answered_as_by_zero_shot(tiny_llama: Path, tmp_path: Path) -> None:
    exams = load_questions("headqa_sample", limit=QUESTIONS)
    (tmp_path / "exams.jsonl").write_text("".join(f"{_row(question)}\n" for question in exams), encoding="utf-8")
    (tmp_path / "mine.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "words.yaml").write_text(WORDS, encoding="utf-8")
    ours = {"kind": "zero_shot", "answer_format": "guided", "prompt": str(tmp_path / "words.yaml")}
    document = {
        "name": "same",
        "dataset": {"kind": "choice", "path": str(tmp_path / "exams.jsonl"), "columns": {"numbering": "one"}},
        # In bfloat16 two options often tie, and the batch decides between them.
        "model": {"engine": "embedded", "path": str(tiny_llama), "dtype": "float32"},
        "matrix": {"program": [ours, f"{tmp_path / 'mine.py'}:Mine"]},
    }
    stored, _ = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), Silent()).run()
    shipped, own = (run.folder.read_predictions() for run in stored)
    assert len(shipped) == QUESTIONS
    assert {key: each.answer for key, each in own.items()} == {key: each.answer for key, each in shipped.items()}
    assert all(own[key].prompt_tokens == each.prompt_tokens for key, each in shipped.items())
    assert len({each.answer for each in shipped.values()}) >= 3, "the model chooses"
    assert stored[0].metrics.accuracy == stored[1].metrics.accuracy
