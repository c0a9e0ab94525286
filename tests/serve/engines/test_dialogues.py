"""Questions asked in bulk send a server what DSPy's own calls send, and answer the same."""

import asyncio
import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import dspy
import pytest
from wire_server import Wire, serving

from medexam.experiments import build_lm
from medexam.predictions import Prediction, Status
from medexam.programs import build_prediction, build_program
from medexam.serve import build_engine
from medexam.signatures.direct import in_bulk, run_program
from medexam.specs import (
    ChainOfThoughtSpec,
    EngineNeeds,
    FewShotSpec,
    ModelSpec,
    ProgramSpec,
    ZeroShotSpec,
)

DRAWN = {"temperature": 0.7, "seed": 5, "top_p": 0.9, "top_k": 3, "stop": ("###",), "extra_body": {"min_tokens": 1}}
PROGRAMS = [
    ZeroShotSpec(answer_format="guided"),
    ZeroShotSpec(answer_format="guided", answer_form="angles"),
    FewShotSpec(answer_format="guided"),
    FewShotSpec(),
    ZeroShotSpec(),
    ZeroShotSpec(max_tokens=500),
    ChainOfThoughtSpec(answer_format="guided"),
    ChainOfThoughtSpec(),
    ZeroShotSpec(samples=3),
]
WIRES = {
    "tokens": {},
    "grammar": {"allowed": False},
    "merged turns": {"system": False, "repeats": False, "empty": False},
    "chat alone": {"tokenize": False},
}


@cache
def _program(spec: ProgramSpec) -> dspy.Module:
    return build_program(spec, "en")


def _ask(wire: Wire, spec, question, model: dict[str, Any], context, asked: list[Any]) -> tuple[Prediction, Any]:
    """The prediction, and the requests that the server received."""

    async def ask() -> dspy.Prediction:
        settings = {"engine": "vllm", "endpoints": (wire.address,), **model}
        engine = await build_engine(ModelSpec(**settings), EngineNeeds(guided=spec.answer_format == "guided"))
        own = engine.reply

        async def reply(dialogue):
            asked.append(dialogue)
            return await own(dialogue)

        engine.reply = reply
        wire.requests.clear()
        try:
            with context(build_lm(ModelSpec(**settings), engine)):
                return await run_program(_program(spec), question)
        finally:
            await engine.aclose()

    said = asyncio.run(ask())
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    return prediction, [request for request in wire.requests if "completions" in request[0]]


def _heard(lm):
    return dspy.context(lm=lm, disable_history=True, trace=[])


def _cases() -> Iterator[Any]:
    for spec, (name, wire), drawn in itertools.product(PROGRAMS, WIRES.items(), (False, True)):
        # The answer continues the reasoning, which the chat endpoint alone cannot.
        if name == "chat alone" and (spec.kind, spec.answer_format) == ("chain_of_thought", "guided"):
            continue
        # How turns are merged and how tokens are drawn have nothing to do with each other; samples are drawn.
        if (spec.samples > 1) > drawn or (drawn and name == "merged turns" and spec.samples == 1):
            continue
        label = f"{spec.label}-{spec.max_tokens}-{spec.answer_form}-{name}-{'drawn' if drawn else 'greedy'}"
        yield pytest.param(spec, DRAWN if drawn else {}, wire, id=label)


@pytest.mark.parametrize(("spec", "model", "wire"), list(_cases()))
def test_both_ways_send_and_answer_the_same(spec, model, wire, question) -> None:
    # Told not to think, a model's free replies are completions too, however its template is seen.
    with serving(Wire(**wire, switch=True)) as server:
        model = {"thinking": "off", **model} if server.tokenize else model
        bulk: list[Any] = []
        heard: list[Any] = []
        direct = _ask(server, spec, question, model, in_bulk, bulk)
        assert direct == _ask(server, spec, question, model, _heard, heard)
    # The engine is asked the same by both ways; only the request of DSPy's that it was read from tells them apart.
    assert [one.source for one in bulk] == [None] * len(bulk)
    assert [one._replace(source=None, fields={}) for one in heard] == [one._replace(fields={}) for one in bulk]
    assert direct[1]
    assert direct[0].status in (Status.ANSWERED, Status.UNANSWERED)


def test_text_that_cannot_be_sent_is_refused_alike(question) -> None:
    broken = question.model_copy(update={"stem": "half \ud800"})
    with serving(Wire()) as server:
        for context in (in_bulk, _heard):
            with pytest.raises(ValueError, match="not valid Unicode"):
                _ask(server, ZeroShotSpec(answer_format="guided"), broken, {}, context, [])


@pytest.mark.parametrize("context", [in_bulk, _heard])
def test_a_prompt_that_does_not_fit_reaches_the_program(context, question) -> None:
    with serving(Wire(context=40)) as server, pytest.raises(dspy.ContextWindowExceededError):
        _ask(server, ZeroShotSpec(answer_format="guided"), question, {}, context, [])
