"""Demonstrations that hold a tested question are refused, whichever way they come into a program."""

from pathlib import Path

import pytest
import yaml

import medexam
from medexam.errors import SpecError
from table_cases import read_table, write_squad

CORPUS = str(Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz")


@pytest.fixture(scope="module")
def tested():
    return medexam.load_questions("headqa_sample")


@pytest.fixture
def examples(tested, tmp_path):
    """A file of examples, the second of which is a tested question with one word added."""
    other = {"stem": "Which is a vitamin?", "discipline": "biology", "options": ["Zinc", "Retinol"], "answer": 2}
    options = [option.text for option in tested[0].options]
    copied = {"stem": f"Surely, {tested[0].stem}", "discipline": "biology", "options": options, "answer": 1}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"en": [other, copied]}))
    return str(path)


@pytest.mark.parametrize(*read_table("leaking_examples"), ids=str)
def test_examples_of_ones_own_that_hold_a_tested_question_are_refused(program, spec, examples, tested) -> None:
    retriever = {} if program["kind"] == "few_shot" else {"retriever": {"kind": "bm25", "corpus": CORPUS}}
    spec["model"]["temperature"], spec["dataset"] = 0.7, "headqa_sample"
    with pytest.raises(SpecError, match=f"mine.yaml: demonstration examples/2 is nearly {tested[0].key}, which is"):
        medexam.plan(spec | {"program": {**program, **retriever, "examples": examples}})


def test_the_papers_examples_are_of_no_exam_that_ships(spec, tested) -> None:
    (cell,) = medexam.plan(spec | {"program": {"kind": "few_shot"}, "dataset": "headqa_sample"}).cells
    assert (cell["questions"], len(cell["prompt"]) > 3) == (len(tested), True)


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
def test_demonstrations_of_a_module_of_ones_own_are_refused(form, compiled, spec, tested, tmp_path) -> None:
    question = tested[3]
    text, options = question.printed, [option.text for option in question.options]
    shown = {
        "text": {"question": text},
        "parts": {"stem": question.stem, "options": options},
        "names of one's own": {"enunciado": question.stem, "opciones": "\n".join(options)},
        "with a note": {"pregunta": text, "note": "A long note on how one thinks about it. " * 3 + text[:9]},
    }[form]
    path = tmp_path / "mine.py"
    path.write_text(MODULE.format(inputs=repr(", ".join(shown)), shown=repr(shown), compiled=compiled))
    with pytest.raises(SpecError, match=f"program Mine: demonstration .*ask is nearly {question.key}, which is asked"):
        medexam.plan(spec | {"dataset": "headqa_sample", "program": {"kind": f"{path}:Mine"}})


def test_questions_in_words_are_compared_with_all_that_they_show(spec, tmp_path) -> None:
    case = "A man of 60 years has had a cough and fever for three days, and now his chest hurts on the right side."
    ask = "Which words explain the right answer?"
    demo = {"question": ask, "context": case, "answer": "cough"}

    def plan(context):
        path = write_squad(tmp_path / "en.jsonl", [("1_CQ#E", context, ask, context.split()[0])])
        program = {"name": "own", "steps": [{"ask": "question, context -> answer", "demos": [demo]}]}
        return medexam.plan(spec | {"dataset": {"kind": "spans", "path": str(path)}, "program": program})

    plan("Another case with other words.")
    with pytest.raises(SpecError, match=r"is nearly .*1_CQ#E.*, which is asked"):
        plan(case)
