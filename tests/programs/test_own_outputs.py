"""What a module returns beside its answer, and a module that never returns."""

import json

import pytest
import yaml

from medexam.cli.views.debugging import debug_plan
from medexam.experiments import Runner, plan_experiment
from medexam.predictions import Status
from watching import Silent

SURE = """
import dspy
from pydantic import BaseModel

class Source(BaseModel):
    title: str
    year: int

class Sure(dspy.Module):
    def forward(self, question: str):
        source = Source(title="t", year=1999)
        return dspy.Prediction(
            answer=2, reasoning="so", confidence=0.75, keywords=["a", "b"], source=source, nan=float("nan")
        )

def confidence(question, gold, prediction):
    return prediction.outputs["confidence"]
"""
BLOCKS = """
import threading
import dspy

class Blocks(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int")

    def forward(self, question):
        if question.key.endswith(KEY):
            threading.Event().wait()
        return self.ask(question=question.stem)

class Awaits(Blocks):
    async def aforward(self, question):
        return self.forward(question)
"""
REPLY = "[[ ## answer ## ]]\n1\n\n[[ ## completed ## ]]"


def ask(tmp_path, source: str, name: str, limit: int = 3, **parts):
    (tmp_path / "mine.py").write_text(source)
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": REPLY}))
    program = {"kind": f"{tmp_path / 'mine.py'}:{name}", **parts.pop("program", {})}
    document = {
        "name": "own",
        "dataset": {"name": "headqa_sample", "limit": limit},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": program,
        **parts,
    }
    plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
    (stored,), _ = Runner(plan, Silent()).run()
    return plan, stored


def test_other_outputs_are_kept_and_metrics_read_them(tmp_path) -> None:
    _, stored = ask(tmp_path, SURE, "Sure", metrics=[f"{tmp_path / 'mine.py'}:confidence"])
    kept = {
        "confidence": 0.75,
        "keywords": ["a", "b"],
        "source": {"title": "t", "year": 1999},
        "nan": None,
    }
    assert [said.outputs for said in stored.folder.read_predictions().values()] == [kept] * 3
    lines = (stored.folder.path / "predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["outputs"] for line in lines] == [kept] * 3
    assert stored.metrics.own["confidence"].value == 0.75


@pytest.mark.parametrize("name", ["Blocks", "Awaits"])
def test_a_module_that_blocks_fails_its_question_and_holds_up_no_other(tmp_path, name) -> None:
    plan = plan_experiment({"name": "x", "dataset": {"name": "headqa_sample", "limit": 3}}, {}, runs_dir=tmp_path)
    first = plan.cells[0].pending[0].key
    source = BLOCKS.replace("KEY", repr(first))
    plan, stored = ask(tmp_path, source, name, program={"timeout_s": 0.5})
    predictions = stored.folder.read_predictions()
    blocked = predictions.pop(first)
    assert (blocked.status, blocked.failure.kind) == (Status.FAILED, "TimeoutError")
    assert blocked.failure.message == "mine.py:12 in forward: it took more than program.timeout_s, 0.5 s"
    assert "threading.Event().wait()" in blocked.failure.traceback
    assert {said.answer for said in predictions.values()} == {1}


def test_no_digest_depends_on_the_limit_of_time(tmp_path) -> None:
    digests = {ask(tmp_path, SURE, "Sure", program=part)[0].cells[0].spec_digest for part in ({}, {"timeout_s": 9})}
    assert len(digests) == 1


def test_a_guided_answer_survives_another_output_that_does_not_parse(tmp_path) -> None:
    source = """
import dspy

class Both(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict("question -> answer: int, years: list[int], sure: bool")

    def forward(self, question: str):
        return self.ask(question=question)
"""
    _, stored = ask(tmp_path, source, "Both", program={"answer_format": "guided"})
    for said in stored.folder.read_predictions().values():
        assert said.status is Status.ANSWERED
        assert said.outputs == {"years": None, "sure": True}


def test_one_question_is_asked_with_everything_printed_and_nothing_kept(tmp_path, capsys) -> None:
    raises = """
class Raises(Blocks):
    def forward(self, question):
        super().forward(question)
        raise KeyError("mine")
"""
    source = BLOCKS.replace("KEY", "'none'") + raises
    (tmp_path / "mine.py").write_text(source)
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": REPLY}))
    for name, ends in (("Blocks", "status: answered"), ("Awaits", "answer: 1"), ("Raises", "KeyError: 'mine'")):
        document = {
            "name": "own",
            "dataset": {"name": "headqa_sample", "limit": 3},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": {"kind": f"{tmp_path / 'mine.py'}:{name}"},
        }
        debug_plan(plan_experiment(document, {}, runs_dir=tmp_path / "runs"))
        printed = capsys.readouterr().out
        for words in ("Call 1", "[system]", "[[ ## question ## ]]", 'settings: {"temperature": 0.0', "reply:", ends):
            assert words in printed
        assert "Call 2" not in printed
    assert not list((tmp_path / "runs").rglob("predictions.jsonl"))
