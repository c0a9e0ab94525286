"""What is left out of a request is drawn as the spec says: from all tokens, whatever the server's defaults are."""

from typing import Any

import pytest
from engine_calls import CHAT, COMPLETIONS, GUIDED, ask, reaching, reply
from other_servers import LlamaServer
from wire_server import Wire, serving

from medexam.model_calls import Dialogue
from medexam.serve import NO_KEY, Capabilities, Endpoint, probe_endpoint

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


async def probe(wire: Wire) -> Capabilities:
    return await probe_endpoint(Endpoint(wire.address, NO_KEY), None)


class Strict(Wire):
    """Wants another word for all tokens."""

    def fault_of(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        refused = (422, {"detail": "top_k: at least 0"}) if body.get("top_k", 0) < 0 else None
        return refused or super().fault_of(body)


@pytest.mark.parametrize(
    ("wire", "neutral", "unread", "filled"),
    [
        (Wire(), NEUTRAL, (), ()),
        (Wire(fills=QWEN), NEUTRAL, (), ("top_p", "top_k", "repetition_penalty")),
        (Wire(unread=("min_p",)), NEUTRAL, ("min_p",), ()),
        (Wire(refused_fields=("min_p",)), {k: v for k, v in NEUTRAL.items() if k != "min_p"}, (), ()),
        (Wire(several=False, fills=QWEN), NEUTRAL, (), None),
        (LlamaServer(), {**NEUTRAL, "repeat_penalty": 1.0}, (), None),
        (Strict(), {**NEUTRAL, "top_k": 0}, (), ()),
    ],
    ids=["neutral", "fills", "does not read", "refuses", "no n", "llama.cpp", "another word"],
)
async def test_what_a_server_does_with_sampling_values(
    wire: Wire, neutral: dict[str, float], unread: tuple[str, ...], filled: tuple[str, ...] | None
) -> None:
    with serving(wire):
        seen = await probe(wire)
    assert (seen.sampling.neutral, seen.sampling.unread, seen.sampling.filled) == (neutral, unread, filled)
    if filled:
        assert seen.identity.notes["fills"] == ", ".join(filled)


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
