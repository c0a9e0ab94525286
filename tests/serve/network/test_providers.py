"""Every provider's wire: free and guided answers arrive, and what it does not take is left out, named and recorded."""

import asyncio
from typing import Any

import pytest
from dspy.lm15 import Config, Message, Request
from provider_wire import ProviderWire, serve_provider
from provider_wires import (
    GPT5,
    O3,
    WIRES,
    Anthropic,
    Azure,
    Bedrock,
    Cohere,
    Databricks,
    Gemini,
    GeminiPro,
    Mistral,
    NewAnthropic,
    OpenAI,
    SambaNova,
    Zai,
)

from asked import complete
from medexam.dspy_requests import CHOICE
from medexam.errors import EngineError, RateLimitError
from medexam.serve import Engine, build_engine
from medexam.serve.network.retry import ask_again
from medexam.specs import EngineNeeds, ModelSpec

FREE, GUIDED = EngineNeeds(chat=True), EngineNeeds(chat=True, guided=True)


async def build(wire: ProviderWire, needs: EngineNeeds = FREE, **model: Any) -> Engine:
    hot = {"temperature": 1.0} if isinstance(wire, GPT5) else {}
    return await build_engine(ModelSpec(engine="litellm", name=wire.model_name, **{**hot, **model}), needs)


def ask(choices: list[str] | None = None, **config: Any) -> Request:
    opening = [Message.assistant("{Answer: ")] if choices else []
    settings = {"temperature": 1.0, "max_tokens": 64, "seed": 0, **config}
    return Request(
        model="m",
        system="Answer.",
        messages=(Message.user("Which?"), *opening),
        config=Config(**settings, extensions={CHOICE: choices} if choices else None),
    )


@pytest.mark.parametrize("wire", [kind() for kind in WIRES], ids=lambda wire: wire.model_name)
async def test_free_and_guided_answers(wire: ProviderWire) -> None:
    with serve_provider(wire):
        engine = await build(wire, GUIDED)
        free = await complete(engine, ask())
        chosen = await complete(engine, ask(["1", "2", "3"], max_tokens=None))
        record = engine.info().details["capabilities"]
        await engine.aclose()
    assert (free.text, chosen.text) == ("{Answer: 1}", "3")
    assert record["probed"]
    assert record["guided_by"] in ("json_schema", "json_object", "tool_choice", "json_mode")


@pytest.mark.parametrize("kind", [Anthropic, Bedrock])
async def test_a_provider_without_seeds_is_asked_without_one(kind: type[ProviderWire]) -> None:
    with serve_provider(kind()) as wire:
        engine = await build(wire)
        assert (await complete(engine, ask())).text == "{Answer: 1}"
        assert engine.info().details["capabilities"]["seeds"] is False
        await engine.aclose()
    assert not any("seed" in str(body) for _, body in wire.requests)


async def test_a_seed_that_only_the_wire_refuses() -> None:
    with serve_provider(OpenAI(unknown=("seed",))) as wire:
        engine = await build(wire)
        await complete(engine, ask())
        record = engine.info().details["capabilities"]
        await engine.aclose()
    assert record["seeds"] is False
    assert "'seed' is not supported" in record["refusals"]["seed"]
    assert "seed" not in wire.requests[-1][1]


@pytest.mark.parametrize("wire", [GPT5(), O3(), OpenAI(temperatures=(1,))], ids=["tables", "tables too", "wire"])
async def test_a_refused_temperature_is_named(wire: ProviderWire) -> None:
    with serve_provider(wire), pytest.raises(EngineError, match=r"no temperature of 0: set model\.temperature: 1 "):
        await build(wire, temperature=0.0)


@pytest.mark.parametrize("kind", [GPT5, Gemini])
async def test_a_model_that_thinks_has_room_to_do_so(kind: type[ProviderWire]) -> None:
    with serve_provider(kind(thought=4000)) as wire:
        engine = await build(wire)
        assert (await complete(engine, ask(max_tokens=7))).text == "{Answer: 1}"
        await engine.aclose()
        limited = await build(wire, max_tokens=5000)
        await complete(limited, ask(max_tokens=5000))
        await limited.aclose()
    assert wire.questions[-1].max_tokens == 5000


@pytest.mark.parametrize("wire", [GPT5(), O3()], ids=["by the tables", "on the wire"])
async def test_stops_that_a_model_refuses_are_cut_here(wire: ProviderWire) -> None:
    with serve_provider(wire):
        engine = await build(wire)
        assert (await complete(engine, ask(stop=("1}",)))).text == "{Answer: "
        await engine.aclose()


async def test_opening_words_are_left_out_where_they_are_refused() -> None:
    for kind, takes in ((Mistral, False), (NewAnthropic, False), (Bedrock, True)):
        with serve_provider(kind()) as wire:
            engine = await build(wire, GUIDED)
            await complete(engine, ask(["1", "2"]))
            assert engine.info().details["capabilities"]["prefills"] is takes
            await engine.aclose()
        assert (wire.questions[-1].messages[-1]["role"] == "assistant") is takes


@pytest.mark.parametrize(("forms", "guided_by"), [(("json_object",), "json_mode"), ((), "words")])
async def test_words_hold_a_model_that_heeds_them(forms: tuple[str, ...], guided_by: str) -> None:
    with serve_provider(OpenAI(held=False, forms=forms)) as wire:
        engine = await build(wire, GUIDED)
        assert (await complete(engine, ask(["1", "2"]))).text == "2"
        assert engine.info().guided_by == guided_by
        wire.obeys = False
        assert (await complete(engine, ask(["1", "2"]))).text == "{Answer: 1}"
        await engine.aclose()


@pytest.mark.parametrize("model", [{"thinking": "on"}, {"thinking": 2048}, {"reasoning_effort": "low"}])
async def test_claude_thinks_beside_its_reply(model: dict[str, Any]) -> None:
    with serve_provider(Anthropic()) as wire:
        engine = await build(wire, GUIDED, temperature=1.0, **model)
        assert (await complete(engine, ask(["1", "2"]))).text == "2"
        assert (await complete(engine, ask())).text == "{Answer: 1}"
        await engine.aclose()
    with serve_provider(Anthropic()) as wire, pytest.raises(EngineError, match=r"set model\.temperature: 1 "):
        await build(wire, **model)


async def test_gemini_stops_thinking_or_is_refused_by_name() -> None:
    with serve_provider(Gemini()) as wire:
        engine = await build(wire, thinking="off")
        await complete(engine, ask())
        await engine.aclose()
    assert not any(asked.thinks for asked in wire.questions)
    with serve_provider(GeminiPro()) as wire, pytest.raises(EngineError, match=r"refuses model\.thinking: .*Budget 0"):
        await build(wire, thinking="off")


KINDS = {kind.name: kind for kind in reversed(WIRES)}.values()
FAULTS = [(kind(fault=fault), next(iter(kind.variables))) for kind in KINDS for fault in ("key", "quota")]


@pytest.mark.parametrize(("wire", "variable"), FAULTS, ids=lambda one: getattr(one, "fault", one))
async def test_a_wrong_key_and_an_empty_account_are_one_line(wire: ProviderWire, variable: str) -> None:
    with serve_provider(wire), pytest.raises(EngineError) as caught:
        await build(wire, GUIDED)
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)
    if wire.fault == "key":
        assert f"set {variable}" in str(caught.value)
        assert len(wire.requests) == 1


async def test_a_pause_in_words_is_heard() -> None:
    with serve_provider(Gemini(fault="quota")) as wire, pytest.raises(EngineError, match="wait and ask again"):
        await build(wire)
    assert len(wire.requests) == 1


async def test_no_longer_pause_is_waited_for_than_there_is_patience() -> None:
    attempts = []

    async def attempt() -> None:
        attempts.append(1)
        raise RateLimitError("Please retry in 34 s", retry_after=34.0)

    with pytest.raises(RateLimitError):
        await ask_again(attempt, timeout_s=1.0, patience_s=4.0)
    assert len(attempts) == 1


def test_seed_null_sends_none() -> None:
    with serve_provider(OpenAI()) as wire:
        engine = asyncio.run(build(wire, seed=None))
        asyncio.run(complete(engine, ask(seed=None)))
        asyncio.run(engine.aclose())
    assert not any("seed" in body for _, body in wire.requests)


@pytest.mark.parametrize("kind", [Azure, Bedrock, Cohere, Databricks, SambaNova, Zai])
async def test_missing_settings_are_named_in_one_line(kind: type[ProviderWire], monkeypatch) -> None:
    if kind is Databricks:
        import databricks.sdk  # noqa: F401 - litellm would within the call: on a busy machine, longer than one may take
    with serve_provider(kind(fault="key")) as wire, monkeypatch.context() as patch:
        for variable in wire.variables:
            patch.delenv(variable)
        with pytest.raises(EngineError) as caught:
            await build(wire)
    said = str(caught.value)
    assert f"set {next(iter(kind.variables))}" in said
    assert not [words for words in ("\n", "Traceback", "AZURE_OPENAI_API_KEY", "ADMIN_KEY") if words in said]
