"""Calls without what nobody listens to: the same requests, answers and errors as DSPy's own calls."""

import asyncio

import dspy
import pytest
from dspy.utils.exceptions import LMServerError

from asked import requests_of
from medexam.errors import ContextLengthError, ServerError
from medexam.experiments import build_lm
from medexam.model_calls import Dialogue, Sampling
from medexam.predictions import Status
from medexam.programs import build_prediction, build_program
from medexam.serve import ScriptedEngine
from medexam.signatures.direct import ask_dialogue, in_bulk, is_heard
from medexam.specs import (
    ChainOfThoughtSpec,
    FewShotSpec,
    LikelihoodSpec,
    ModelSpec,
    ZeroShotSpec,
)

MODEL = ModelSpec(engine="scripted", path="replies.yaml", temperature=0.7, seed=1)
REPLY = {"*": "It is the third one. {Answer: 3}"}
SPECS = [
    ZeroShotSpec(),
    ZeroShotSpec(answer_format="guided"),
    FewShotSpec(answer_format="guided"),
    ChainOfThoughtSpec(),
    ChainOfThoughtSpec(answer_format="guided"),
    ChainOfThoughtSpec(samples=3),
    LikelihoodSpec(),
]


@pytest.fixture
def dspys_own(monkeypatch) -> list[str]:
    """The class of each predictor and model that DSPy's own call was made of, in order."""
    calls: list[str] = []
    for kind in (dspy.Predict, dspy.LM):
        own = kind.acall

        async def noted(self, *args, _own=own, **inputs):
            calls.append(type(self).__name__)
            return await _own(self, *args, **inputs)

        monkeypatch.setattr(kind, "acall", noted)
    return calls


def _ask(spec, question, context):
    # A number for each word of each option.
    weighed = {"logprobs": [[-option.number / 10] * len(option.text.split()) for option in question.options]}
    engine = ScriptedEngine(lambda _: weighed if spec.kind == "likelihood" else REPLY["*"])
    lm = build_lm(MODEL, engine)
    with context(lm):
        said = asyncio.run(build_program(spec, "en").acall(question=question))
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    return prediction, requests_of(engine)


def _heard(lm):
    return dspy.context(lm=lm, disable_history=True, trace=[])


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.label)
def test_both_ways_ask_and_answer_alike(spec, question, dspys_own) -> None:
    direct = _ask(spec, question, in_bulk)
    assert not dspys_own
    assert direct == _ask(spec, question, _heard)
    assert dspys_own
    assert direct[0].status is Status.ANSWERED


@pytest.mark.parametrize(
    "listens",
    [
        {"callbacks": [dspy.utils.callback.BaseCallback()]},
        {"trace": []},
        {"track_usage": True},
        {"disable_history": False},
    ],
    ids=lambda listens: next(iter(listens)),
)
def test_whoever_listens_gets_dspys_own_call(listens, question, dspys_own) -> None:
    _ask(
        ZeroShotSpec(),
        question,
        lambda lm: dspy.context(**{"lm": lm, "disable_history": True, "trace": None, **listens}),
    )
    assert dspys_own == ["Predict", "EngineLM"]


def test_a_trace_holds_what_was_asked(question) -> None:
    trace: list[object] = []
    _ask(ZeroShotSpec(), question, lambda lm: dspy.context(lm=lm, disable_history=True, trace=trace))
    ((predictor, inputs, said),) = trace
    assert (type(predictor), inputs, said.answer) == (dspy.Predict, {"question": question}, 3)


@pytest.mark.parametrize("context", [in_bulk, _heard])
def test_errors_are_dspys(context, question) -> None:
    class Broken(ScriptedEngine):
        async def reply(self, dialogue):
            raise ServerError("down")

    lm = build_lm(MODEL, Broken(REPLY))
    with context(lm), pytest.raises(LMServerError, match="down"):
        asyncio.run(build_program(ZeroShotSpec(), "en").acall(question=question))


@pytest.mark.parametrize("context", [in_bulk, _heard])
def test_a_prompt_that_does_not_fit_reaches_the_program(context, question) -> None:
    class Full(ScriptedEngine):
        async def reply(self, dialogue):
            raise ContextLengthError("too long")

    lm = build_lm(MODEL, Full(REPLY))
    with context(lm), pytest.raises(dspy.ContextWindowExceededError):
        asyncio.run(build_program(ZeroShotSpec(), "en").acall(question=question))


@pytest.mark.parametrize("context", [in_bulk, _heard])
def test_text_that_cannot_be_sent_is_refused(context) -> None:
    lm = build_lm(MODEL, ScriptedEngine(REPLY))
    dialogue = Dialogue([{"role": "user", "content": "half \ud800"}], "", Sampling())
    with context(lm), pytest.raises(ValueError, match="not valid Unicode"):
        asyncio.run(ask_dialogue(lm, dialogue, {}, heard=is_heard()))
