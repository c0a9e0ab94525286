"""Pictures on the wire: what is sent, that it is what the provider's own client sends, and who is not shown any."""

import json
from pathlib import Path
from typing import Any

import pytest
from engine_calls import CHAT, ask, reaching, reply
from wire_server import NEUTRAL, Wire, serving

from medexam.errors import InvalidRequestError, UnsupportedFeatureError
from medexam.model_calls import ContinuationRequest, Dialogue
from medexam.specs import EngineNeeds

RECORDED = Path(__file__).with_name("openai_vision_request.json")
"""The body that the client of the package openai (2.54.0) sent for `QUESTION` with a picture."""
PICTURE: str = json.loads(RECORDED.read_bytes())["messages"][-1]["content"][0]["image_url"]["url"]
QUESTION = "What is drawn?\n1. A circle\n2. ¿Un cuadrado?"
LOOKING = EngineNeeds(chat=True, pictures=True)
GUIDED = EngineNeeds(chat=True, pictures=True, guided=True)
TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Example?"},
    {"role": "assistant", "content": "{Answer: 2}"},
    {"role": "user", "content": QUESTION},
]
SEEN = ask(turns=TURNS, more={"pictures": (PICTURE,)})
CHOICE = SEEN._replace(choices=("1", "2"))


async def ask_once(wire: Wire, dialogue: Dialogue, needs: EngineNeeds = LOOKING) -> Any:
    async with reaching(wire, needs=needs) as built:
        return await reply(built, dialogue)


async def test_a_request_is_the_one_of_the_providers_client() -> None:
    with serving(Wire(sight="reads")) as wire:
        answer = await ask_once(wire, SEEN)
    assert answer.text == "hello"
    (body,) = wire.bodies(CHAT)
    # What the client leaves to the server, which may have values of its own.
    assert body.keys() >= NEUTRAL.keys()
    body = {name: value for name, value in body.items() if name not in NEUTRAL}
    assert body == json.loads(RECORDED.read_bytes())
    # Field by field in the client's own bytes; only the order of the fields may differ.
    messages = json.dumps(body["messages"], ensure_ascii=False, separators=(",", ":")).encode()
    assert messages in wire.raw[-1]
    assert messages in RECORDED.read_bytes()


async def test_a_guided_answer_is_asked_with_the_picture() -> None:
    with serving(Wire(sight="reads")) as wire:
        assert (await ask_once(wire, CHOICE, GUIDED)).text == "2"
        body = wire.bodies(CHAT)[-1]
    assert body["messages"][-1]["content"][0] == {"type": "image_url", "image_url": {"url": PICTURE}}
    assert body["response_format"]["json_schema"]["schema"]["properties"]["answer"]["enum"] == ["1", "2"]


@pytest.mark.parametrize(
    "asked",
    [
        SEEN._replace(plain=True),
        SEEN._replace(continuations=ContinuationRequest(texts=("a", "b"), template=True)),
        SEEN._replace(opening="So: "),
    ],
    ids=["plain", "continuations", "opening words alone"],
)
async def test_what_cannot_be_asked_of_a_picture_is_refused(asked: Dialogue) -> None:
    with serving(Wire(sight="reads")) as wire, pytest.raises((UnsupportedFeatureError, InvalidRequestError)):
        await ask_once(wire, asked)
