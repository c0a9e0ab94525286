"""Log-probabilities from a live server: its ways against each other, and against the weights in this process."""

import asyncio
import os
from collections.abc import Sequence

import dspy
import pytest

from medexam.datasets import load_exam_set
from medexam.programs import build_program
from medexam.questions import Question
from medexam.serve import build_engine
from medexam.specs import DatasetSpec, EngineNeeds, ModelSpec, ProgramSpec, build_cells
from recorded import recorded

pytestmark = pytest.mark.vllm

TOKEN = 0.02
"""Nats a token within which two ways of one server agree."""


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    """The 100 shortest questions of HEAD-QA v1 in English, of all disciplines: every way reads them in seconds."""
    if "MEDEXAM_DATA" not in os.environ:
        pytest.skip("MEDEXAM_DATA names no full data sets")
    exams = load_exam_set(DatasetSpec(name="headqa_v1", language="en")).questions
    return sorted(exams, key=lambda q: (len(q.stem) + 4 * sum(len(o.text) for o in q.options), q.key))[:100]


def answers(model: ModelSpec, spec: ProgramSpec, questions: Sequence[Question]) -> list[dspy.Prediction]:
    async def answer() -> list[dspy.Prediction]:
        engine = await build_engine(model, EngineNeeds(logprobs=True))
        program = build_program(spec, "en")
        lm = recorded(engine)
        try:
            with dspy.context(lm=lm, disable_history=True):
                return list(await asyncio.gather(*(program.acall(question=question) for question in questions)))
        finally:
            await engine.aclose()

    return asyncio.run(answer())


def compare(one: Sequence[dspy.Prediction], other: Sequence[dspy.Prediction]) -> tuple[float, float]:
    """The largest difference of an option's score, and the share of equal answers."""
    pairs = list(zip(one, other, strict=True))
    far = max(abs(a.option_scores[n] - b.option_scores[n]) for a, b in pairs for n in a.option_scores)
    return far, sum(a.answer == b.answer for a, b in pairs) / len(pairs)


def likelihood(**fields) -> ProgramSpec:
    program = {"kind": "likelihood", **fields}
    return build_cells({"name": "x", "dataset": "headqa_sample", "program": program}, {})[1][0].program


def test_a_server_and_the_weights_themselves_agree_on_100_questions(endpoint, questions) -> None:
    served = answers(ModelSpec(engine="vllm", endpoints=(endpoint,)), likelihood(), questions)
    here = answers(ModelSpec(engine="embedded", dtype="float32"), likelihood(), questions)
    assert all(said.answer is not None for said in (*served, *here))
    far, same = compare(served, here)
    assert same >= 0.97
    # A server in bfloat16 differs by what bfloat16 does to the same weights here, and not by more.
    if far > TOKEN:
        rounded = answers(ModelSpec(engine="embedded", dtype="bfloat16"), likelihood(), questions[:20])
        assert far < 3 * compare(here[:20], rounded)[0]


def test_labels_are_the_same_by_one_place_and_by_echo(endpoint) -> None:
    questions = load_exam_set(DatasetSpec(name="headqa_sample", language="es", limit=8)).questions
    served = ModelSpec(engine="vllm", endpoints=(endpoint,))
    one, other = (answers(served, likelihood(read="label", read_by=way), questions) for way in ("label", "echo"))
    far, same = compare(one, other)
    assert far < TOKEN
    assert same == 1.0
    for a, b in zip(one, other, strict=True):
        assert a.label_mass == pytest.approx(b.label_mass, rel=0.05)
        assert 0 < a.label_mass <= 1.001
