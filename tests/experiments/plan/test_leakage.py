"""Demonstrations that hold a tested question are refused, whichever way they come into a program."""

from pathlib import Path

import dspy
import pytest
import yaml

from medexam.datasets import load_exam_set
from medexam.errors import SpecError
from medexam.experiments import plan_experiment
from medexam.experiments.plan.leakage import check_demonstrations
from medexam.programs import build_program
from medexam.questions import Question, Task
from medexam.signatures import render_question
from medexam.specs import DatasetSpec
from medexam.specs.programs.own import SignatureSpec

CORPUS = str(Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz")
SPEC = {
    "name": "mine",
    "dataset": {"name": "headqa_sample", "language": "en"},
    "model": {"engine": "vllm", "name": "m", "endpoints": ["http://127.0.0.1:1/v1"], "temperature": 0.7},
}


@pytest.fixture(scope="module")
def asked() -> tuple[Question, ...]:
    return load_exam_set(DatasetSpec(name="headqa_sample")).questions


@pytest.fixture
def examples(asked, tmp_path):
    """A file of examples, the second of which is a tested question with one word changed."""
    other = {"stem": "Which is a vitamin?", "discipline": "biology", "options": ["Zinc", "Retinol"], "answer": 2}
    tested = asked[0]
    copied = {
        "stem": f"Surely, {tested.stem}",
        "discipline": "biology",
        "options": [option.text for option in tested.options],
        "answer": 1,
    }
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"en": [other, copied]}))
    return path


@pytest.mark.parametrize(
    "program",
    [
        {"kind": "few_shot"},
        {"kind": "few_shot", "samples": 2},
        {"kind": "few_shot", "orders": "cyclic"},
        {"kind": "few_shot", "answer_format": "guided"},
        {"kind": "retrieve_then_answer", "then": "few_shot"},
        {"kind": "retrieve_then_answer", "then": "few_shot", "cite": True},
        {"kind": "retrieve_verify", "then": "few_shot"},
        {"kind": "iterative_retrieval", "then": "few_shot"},
    ],
    ids=str,
)
def test_examples_of_ones_own_that_hold_a_tested_question_are_refused(program, examples, asked, tmp_path) -> None:
    retriever = {} if program["kind"] == "few_shot" else {"retriever": {"kind": "bm25", "corpus": CORPUS}}
    document = {**SPEC, "program": {**program, **retriever, "examples": str(examples)}}
    with pytest.raises(
        SpecError, match=f"mine.yaml: demonstration examples/2 is nearly {asked[0].key}, which is asked"
    ):
        plan_experiment(document, {}, runs_dir=tmp_path)


def test_the_papers_examples_are_of_no_exam_that_ships(tmp_path) -> None:
    (cell,) = plan_experiment({**SPEC, "program": {"kind": "few_shot"}}, {}, runs_dir=tmp_path).cells
    assert cell.program.predictors()[0].demos


MODULE = """
import dspy

INPUTS = {inputs}
SHOWN = {shown}


class Inner(dspy.Module):
    def __init__(self):
        super().__init__()
        self.ask = dspy.Predict(INPUTS + " -> answer: int")
        self.ask.demos = [dspy.Example(**SHOWN, answer=1)]
        self._compiled = {compiled}

    def forward(self, **fields):
        return self.ask(**fields)


class Mine(dspy.Module):
    def __init__(self):
        super().__init__()
        self.steps = [Inner()]

    def forward(self, question: str):
        return self.steps[0](question=question)
"""


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("form", ["text", "parts", "names of one's own", "with a note"])
def test_demonstrations_of_a_module_of_ones_own_are_refused(form, compiled, asked, tmp_path) -> None:
    tested = asked[3]
    text, options = render_question(tested), [option.text for option in tested.options]
    shown = {
        "text": {"question": text},
        "parts": {"stem": tested.stem, "options": options},
        "names of one's own": {"enunciado": tested.stem, "opciones": "\n".join(options)},
        "with a note": {"pregunta": text, "note": "A long note on how one thinks about it. " * 3 + text[:9]},
    }[form]
    path = tmp_path / "mine.py"
    path.write_text(MODULE.format(inputs=repr(", ".join(shown)), shown=repr(shown), compiled=compiled))
    with pytest.raises(SpecError, match=f"program Mine: demonstration .*ask is nearly {tested.key}, which is asked"):
        plan_experiment({**SPEC, "program": {"kind": f"{path}:Mine"}}, {}, runs_dir=tmp_path / "runs")


def test_tasks_are_compared_with_all_that_they_show() -> None:
    spec = SignatureSpec(kind="signature", signature="question, context -> answer")
    program = build_program(spec, "en")
    (predictor,) = program.predictors()
    case = "A man of 60 years has had a cough and fever for three days, and now his chest hurts on the right side."
    ask = "Which words explain the right answer?"
    predictor.demos = [dspy.Example(question=ask, context=case, answer="cough")]
    other = Task(key="span/1", group="span", language="en", question=ask, context="Another case with other words.")
    check_demonstrations(spec, program, [other])
    same = Task(key="span/2", group="span", language="en", question=ask, context=case)
    with pytest.raises(SpecError, match="is nearly span/2, which is asked"):
        check_demonstrations(spec, program, [other, same])
