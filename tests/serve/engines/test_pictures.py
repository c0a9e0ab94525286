"""Pictures on the wire: what is sent, that it is what the provider's own client sends, and who is not shown any."""

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from dspy.lm15 import Config, ImagePart, Message, Request, TextPart
from wire_server import Wire, serving

import asked
from medexam.dspy_requests import CHOICE, PLAIN, read_dialogue
from medexam.errors import AnswerFormatError, EngineError, InvalidRequestError, UnsupportedFeatureError
from medexam.serve import Endpoint, ScriptedEngine, build_engine, probe_endpoint
from medexam.serve.discovery.sampling import NEUTRAL
from medexam.serve.discovery.sight import SQUARE
from medexam.specs import EngineNeeds, ModelSpec

RECORDED = Path(__file__).with_name("openai_vision_request.json")
"""The body that the client of the package openai (2.54.0) sent for `QUESTION` with a picture."""
QUESTION = "What is drawn?\n1. A circle\n2. ¿Un cuadrado?"
CHAT = "/v1/chat/completions"
LOOKING = EngineNeeds(chat=True, pictures=True)
KIND, _, DATA = SQUARE.removeprefix("data:").partition(";base64,")


def ask(*, prefill: str = "", **extensions: Any) -> Request:
    seen = Message.user([ImagePart(media_type=KIND, data=DATA), TextPart(QUESTION)])
    messages = (Message.user("Example?"), Message.assistant("{Answer: 2}"), seen)
    if prefill:
        messages = (*messages, Message.assistant(prefill))
    config = Config(temperature=0.0, max_tokens=8, extensions=extensions or None)
    return Request(model="m", system="Be brief.", messages=messages, config=config)


def spec(wire: Wire, engine: str) -> ModelSpec:
    return ModelSpec(engine=engine, name="tiny" if engine == "vllm" else "openai/tiny", endpoints=(wire.address,))


async def complete(wire: Wire, engine: str, request: Request, needs: EngineNeeds = LOOKING) -> Any:
    built = await build_engine(spec(wire, engine), needs)
    try:
        wire.requests.clear()
        wire.raw.clear()
        return await asked.complete(built, request)
    finally:
        await built.aclose()


def test_the_record_is_what_the_providers_client_sends() -> None:
    with serving(Wire(sight="reads")) as wire, openai.OpenAI(base_url=wire.address, api_key="none") as client:
        client.chat.completions.create(
            model="tiny",
            messages=[
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Example?"},
                {"role": "assistant", "content": "{Answer: 2}"},
                {
                    "role": "user",
                    "content": [
                        {"type": "image_url", "image_url": {"url": SQUARE}},
                        {"type": "text", "text": QUESTION},
                    ],
                },
            ],
            max_tokens=8,
            temperature=0.0,
        )
    assert wire.raw == [RECORDED.read_bytes()]


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
async def test_a_request_is_the_one_of_the_providers_client(engine: str) -> None:
    with serving(Wire(sight="reads")) as wire:
        reply = await complete(wire, engine, ask())
    assert reply.text == "hello"
    (body,) = wire.bodies(CHAT)
    if engine == "vllm":
        # What the client leaves to the server, which may have values of its own.
        stated = set(NEUTRAL)
        assert stated <= body.keys()
        body = {name: value for name, value in body.items() if name not in stated}
    assert body == json.loads(RECORDED.read_bytes())
    # Field by field in the client's own bytes; only the order of the fields may differ.
    messages = json.dumps(body["messages"], ensure_ascii=False, separators=(",", ":")).encode()
    assert messages in wire.raw[-1]
    assert messages in RECORDED.read_bytes()


async def test_a_guided_answer_is_held_by_a_grammar_on_the_chat_endpoint() -> None:
    with serving(Wire(sight="reads")) as wire:
        needs = EngineNeeds(chat=True, pictures=True, guided=True)
        reply = await complete(wire, "vllm", ask(prefill="{Answer: ", **{CHOICE: ["1", "2"]}), needs)
        (body,) = wire.bodies(CHAT)
    assert reply.text == "1"
    assert body["structured_outputs"] == {"regex": r"\{Answer: (1|2)"}
    assert body["messages"][-1]["content"][0] == {"type": "image_url", "image_url": {"url": SQUARE}}


async def test_a_hosted_choice_is_asked_with_the_picture() -> None:
    with serving(Wire(sight="reads")) as wire:
        reply = await complete(wire, "litellm", ask(**{CHOICE: ["1", "2"]}))
        (body,) = wire.bodies(CHAT)
    assert reply.text == "2"
    assert [part["type"] for part in body["messages"][-1]["content"]] == ["image_url", "text"]


async def test_instructions_that_join_the_question_stand_behind_its_picture() -> None:
    with serving(Wire(sight="reads", repeats=False)) as wire:
        request = ask()
        await complete(wire, "vllm", Request(model="m", messages=(Message.user("Be brief."), request.messages[-1])))
        (body,) = wire.bodies(CHAT)
    (only,) = body["messages"]
    assert only["content"][1] == {"type": "text", "text": f"Be brief.\n\n{QUESTION}"}


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
@pytest.mark.parametrize("sight", ["refuses", "drops"])
async def test_a_model_that_does_not_see_is_refused_by_name(engine: str, sight: Any) -> None:
    with serving(Wire(sight=sight)) as wire:
        with pytest.raises(
            EngineError, match=r"tiny, which sees no pictures: .* set program\.images to hidden$"
        ) as told:
            await build_engine(spec(wire, engine), LOOKING)
        await (await build_engine(spec(wire, engine), EngineNeeds(chat=True))).aclose()
    assert "\n" not in str(told.value)


async def test_the_embedded_model_is_refused_by_name() -> None:
    with pytest.raises(EngineError, match="engine embedded has SmolLM2-135M-Instruct, which sees no pictures"):
        await build_engine(ModelSpec(), LOOKING)


async def test_guided_answers_to_pictures_need_a_grammar() -> None:
    with serving(Wire(sight="reads", structured=False)) as wire:
        await (await build_engine(spec(wire, "vllm"), EngineNeeds(chat=True, guided=True))).aclose()
        with pytest.raises(AnswerFormatError, match=r"ignored it, so guided answers to pictures .* upgrade the server"):
            await build_engine(spec(wire, "vllm"), EngineNeeds(chat=True, guided=True, pictures=True))
    refusing = Wire(sight="reads", refused_fields=("structured_outputs",), owner="me", version=None)
    with serving(refusing), pytest.raises(AnswerFormatError) as caught:
        await build_engine(spec(refusing, "vllm"), EngineNeeds(chat=True, guided=True, pictures=True))
    assert "refused structured_outputs (HTTP 400: structured_outputs is not configured)" in str(caught.value)
    assert "upgrade" not in str(caught.value)


async def test_a_picture_is_shown_at_the_start_only_if_one_is_asked() -> None:
    with serving(Wire(sight="reads")) as wire:
        endpoint = Endpoint(wire.address, "none")
        for pictures, sees in ((False, None), (True, True)):
            wire.raw.clear()
            assert (await probe_endpoint(endpoint, None, pictures=pictures)).sees is sees
            assert sum(SQUARE.encode() in body for body in wire.raw) == int(pictures)


@pytest.mark.parametrize("extensions", [{PLAIN: True}, {"continuations": {"texts": ["a", "b"], "template": True}}])
async def test_what_cannot_be_asked_of_a_picture_is_refused(extensions: dict[str, Any]) -> None:
    with serving(Wire(sight="reads")) as wire, pytest.raises((UnsupportedFeatureError, InvalidRequestError)):
        await complete(wire, "vllm", ask(**extensions))


async def test_opening_words_alone_cannot_be_continued_behind_a_picture() -> None:
    with serving(Wire(sight="reads")) as wire, pytest.raises(UnsupportedFeatureError, match="except by a choice"):
        await complete(wire, "vllm", ask(prefill="So: "))


def test_a_script_answers_by_the_words_beside_a_picture() -> None:
    engine = ScriptedEngine({"What is drawn?": "{Answer: 1}"})
    assert asyncio.run(asked.complete(engine, ask())).text == "{Answer: 1}"
    dialogue = read_dialogue(ask())
    assert dialogue.pictures == (SQUARE,)
    assert dialogue.messages[-1] == {"role": "user", "content": QUESTION}
