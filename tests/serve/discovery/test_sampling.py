"""What is left out of a request is drawn as the spec says: from all tokens, whatever the server's defaults are."""

import pytest
from engine_calls import CHAT, COMPLETIONS, GUIDED, ask, reaching, reply
from wire_server import Wire, serving

from medexam.model_calls import Dialogue

QWEN = {"repetition_penalty": 1.1, "top_p": 0.8, "top_k": 20}
"""The generation_config.json of Qwen2.5's models, without its temperature."""
NEUTRAL = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


DRAWN = {"temperature": 0.7, "seed": 1}


@pytest.mark.parametrize(
    "asked",
    [
        ask(**DRAWN),
        ask(opening="{Answer: ", choices=["1", "2"], **DRAWN),
        ask(opening="Well, ", **DRAWN),
        ask(more={"plain": True}, **DRAWN),
    ],
    ids=["chat", "choice", "opening", "plain"],
)
async def test_every_request_states_neutral_values(asked: Dialogue) -> None:
    with serving(Wire(fills=QWEN)) as wire:
        async with reaching(wire, needs=GUIDED) as engine:
            await reply(engine, asked)
            assert engine.info().details["sampling"] == "neutral"
    (body,) = wire.bodies(CHAT) + wire.bodies(COMPLETIONS)
    assert {name: body.get(name) for name in NEUTRAL} == NEUTRAL
    assert (body["temperature"], body["seed"]) == (0.7, 1)


async def test_a_spec_overrides_them() -> None:
    model = {"temperature": 0.7, "min_p": 0.1, "extra_body": {"repetition_penalty": 1.2}}
    with serving(Wire()) as wire:
        async with reaching(wire, **model) as engine:
            await reply(engine, ask(opening="Well, ", temperature=0.7, top_p=0.9))
    (body,) = wire.bodies(COMPLETIONS)
    own = {"top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.2}
    assert {name: body.get(name) for name in NEUTRAL} == {**NEUTRAL, **own}
