"""What a provider does not take is left out, named and recorded; a fault of the account is one line."""

import asyncio
from typing import Any

import pytest
from engine_calls import GUIDED, ask, reply
from provider_wire import ProviderWire, serve_provider
from provider_wires import GPT5, O3, PROVIDERS, Anthropic, Bedrock, Gemini, GeminiPro, NewAnthropic, OpenAI

from medexam.errors import AnswerFormatError, EngineError
from medexam.serve import TIMING, Engine, build_engine
from medexam.specs import EngineNeeds, ModelSpec

DRAWN = {"temperature": 1.0, "max_tokens": 64, "seed": 0}
FREE = ask(system="Answer.", **DRAWN)
CHOICE = ask(system="Answer.", opening="{Answer: ", choices=["1", "2"], **DRAWN)


async def build(wire: ProviderWire, needs: EngineNeeds | None = None, **model: Any) -> Engine:
    hot = {"temperature": 1.0} if isinstance(wire, GPT5) else {}
    spec = ModelSpec(engine="litellm", name=wire.model_name, **{**hot, **model})
    return await build_engine(spec, needs or EngineNeeds(chat=True))


@pytest.mark.parametrize("wire", [Anthropic(), Bedrock(), OpenAI(unknown=("seed",))], ids=["", "", "on the wire"])
async def test_a_model_that_takes_no_seed_is_asked_without_one(wire: ProviderWire) -> None:
    with serve_provider(wire):
        engine = await build(wire)
        wire.requests.clear()
        assert (await reply(engine, FREE)).text == "{Answer: 1}"
        record = engine.info().details["capabilities"]
        await engine.aclose()
    assert record["seeds"] is False
    assert not any("seed" in str(body) for _, body in wire.requests)
    if wire.unknown and isinstance(wire, OpenAI):
        assert "'seed' is not supported" in record["refusals"]["seed"]


def test_seed_null_sends_none() -> None:
    with serve_provider(OpenAI()) as wire:
        engine = asyncio.run(build(wire, seed=None))
        asyncio.run(reply(engine, FREE.with_seed(None)))
        asyncio.run(engine.aclose())
    assert not any("seed" in body for _, body in wire.requests)


@pytest.mark.parametrize("wire", [GPT5(), O3(), OpenAI(temperatures=(1,))], ids=["tables", "tables too", "wire"])
async def test_a_refused_temperature_is_named(wire: ProviderWire) -> None:
    with serve_provider(wire), pytest.raises(EngineError, match=r"no temperature of 0: set model\.temperature: 1 "):
        await build(wire, temperature=0.0)


@pytest.mark.parametrize("kind", [GPT5, Gemini])
async def test_a_model_that_thinks_has_room_to_do_so(kind: type[ProviderWire]) -> None:
    with serve_provider(kind(thought=4000)) as wire:
        engine = await build(wire)
        assert (await reply(engine, ask(**{**DRAWN, "max_tokens": 7}))).text == "{Answer: 1}"
        await engine.aclose()
        limited = await build(wire, max_tokens=5000)
        await reply(limited, ask(**{**DRAWN, "max_tokens": 5000}))
        await limited.aclose()
    assert wire.questions[-1].max_tokens == 5000


@pytest.mark.parametrize("wire", [GPT5(), O3()], ids=["by the tables", "on the wire"])
async def test_stops_that_a_model_refuses_are_cut_here(wire: ProviderWire) -> None:
    with serve_provider(wire):
        engine = await build(wire)
        assert (await reply(engine, ask(stop=("1}",), **DRAWN))).text == "{Answer: "
        await engine.aclose()


@pytest.mark.parametrize(
    ("kind", "takes"), [(PROVIDERS["mistral"], False), (NewAnthropic, False), (Bedrock, True), (OpenAI, True)]
)
async def test_opening_words_are_left_out_where_they_are_refused(kind: type[ProviderWire], takes: bool) -> None:
    with serve_provider(kind()) as wire:
        engine = await build(wire, GUIDED)
        assert (await reply(engine, CHOICE)).text == "2"
        await engine.aclose()
    assert (wire.questions[-1].messages[-1]["role"] == "assistant") is takes


async def test_a_model_that_words_alone_would_hold_is_not_guided() -> None:
    words, model = r"cannot be held .* set program\.answer_format to free", OpenAI(held=False, forms=("json_object",))
    with serve_provider(model) as wire, pytest.raises(AnswerFormatError, match=words):
        await build(wire, GUIDED)


@pytest.mark.parametrize("model", [{"thinking": "on"}, {"thinking": 2048}, {"reasoning_effort": "low"}])
async def test_claude_thinks_beside_its_reply(model: dict[str, Any]) -> None:
    with serve_provider(Anthropic()) as wire:
        engine = await build(wire, GUIDED, temperature=1.0, **model)
        sent = [body.get("thinking") for _, body in wire.requests]
        assert (await reply(engine, CHOICE)).text == "2"
        assert (await reply(engine, FREE)).text == "{Answer: 1}"
        await engine.aclose()
        if model == {"thinking": 2048}:
            assert {"type": "enabled", "budget_tokens": 2048} in sent
        with pytest.raises(EngineError, match=r"set model\.temperature: 1 "):
            await build(wire, **model)


async def test_gemini_stops_thinking_or_is_refused_by_name() -> None:
    with serve_provider(Gemini()) as wire:
        engine = await build(wire, thinking="off")
        await reply(engine, FREE)
        await engine.aclose()
    assert not any(asked.thinks for asked in wire.questions)
    with serve_provider(GeminiPro()) as wire, pytest.raises(EngineError, match=r"refuses model\.thinking: .*Budget 0"):
        await build(wire, thinking="off")


@pytest.mark.parametrize("fault", ["key", "quota"])
@pytest.mark.parametrize("kind", PROVIDERS.values(), ids=PROVIDERS)
async def test_a_wrong_key_and_an_empty_account_are_one_line(
    kind: type[ProviderWire], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TIMING, "attempts", 2)
    with serve_provider(kind(fault=fault)) as wire, pytest.raises(EngineError) as caught:
        await build(wire, GUIDED)
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)
    if fault == "key":
        assert f"set {next(iter(kind.variables))}" in str(caught.value)
        assert len(wire.requests) == 1


async def test_a_pause_in_words_is_heard() -> None:
    with serve_provider(Gemini(fault="quota")) as wire, pytest.raises(EngineError, match="wait and ask again"):
        await build(wire)
    assert len(wire.requests) == 1
