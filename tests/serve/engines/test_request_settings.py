"""What a spec adds to requests: passed on as it is, or refused by name before anything is asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dspy.lm15 import Config, Message, Request
from pydantic import ValidationError
from wire_server import Wire, serving

from asked import complete, complete_blocking
from medexam.dspy_requests import CHOICE
from medexam.errors import EngineError
from medexam.serve import EmbeddedEngine, Engine, build_engine
from medexam.serve.request_settings import hosted_fields
from medexam.specs import EngineNeeds, ModelSpec

GUIDED = EngineNeeds(guided=True, chat=True)


def ask(text: str = "Which?", *, choices: list[str] | None = None, prefill: str = "", **config: Any) -> Request:
    messages = [Message.user(text), *([Message.assistant(prefill)] if prefill else [])]
    extensions = {CHOICE: choices} if choices else None
    settings = {"temperature": 0.7, "max_tokens": 8, "seed": 1, **config}
    return Request(model="m", messages=tuple(messages), config=Config(**settings, extensions=extensions))


@asynccontextmanager
async def reaching(wire: Wire, needs: EngineNeeds = GUIDED, **model: Any) -> AsyncIterator[Engine]:
    spec = {"engine": "vllm", "endpoints": (wire.address,), "temperature": 0.7, **model}
    engine = await build_engine(ModelSpec(**spec), needs)
    try:
        wire.requests.clear()
        yield engine
    finally:
        await engine.aclose()


async def test_a_server_gets_every_field_on_both_endpoints() -> None:
    model = {"min_p": 0.1, "thinking": 300, "reasoning_effort": "low", "extra_body": {"repetition_penalty": 1.1}}
    with serving(Wire(switch=True, reasoning="hm")) as wire:
        async with reaching(wire, **model) as engine:
            await complete(engine, ask())
            await complete(engine, ask(choices=["1", "2"], prefill="{Answer: "))
    (chat,), (choice,) = wire.bodies("/v1/chat/completions"), wire.bodies("/v1/completions")
    assert {chat[name] for name in ("min_p", "repetition_penalty", "thinking_token_budget")} == {0.1, 1.1, 300}
    assert chat["reasoning_effort"] == "low"
    told = {"reasoning_effort": "low", "enable_thinking": True, "thinking": True}
    assert chat["chat_template_kwargs"] == told
    assert (choice["min_p"], choice["repetition_penalty"], choice["max_tokens"]) == (0.1, 1.1, 1)
    assert choice["prompt"] == "<low><u>Which?\n<a><think>\n\n</think>\n\n{Answer: "


async def test_thinking_that_is_off_is_rendered_so() -> None:
    with serving(Wire(switch=True)) as wire:
        async with reaching(wire, thinking=False) as engine:
            await complete(engine, ask(choices=["1", "2"], prefill="{Answer: "))
    (choice,) = wire.bodies("/v1/completions")
    assert choice["prompt"] == "<u>Which?\n<a><think>\n\n</think>\n{Answer: "


@pytest.mark.parametrize(
    ("wire", "model", "told"),
    [
        (Wire(), {"reasoning_effort": "low"}, "does not take model.reasoning_effort"),
        (Wire(), {"thinking": "off"}, "cannot switch thinking off"),
        (
            Wire(switch=True, refused_fields=("thinking_token_budget",)),
            {"thinking": 99},
            "refuses model.thinking: thinking_token_budget is not configured",
        ),
        (Wire(refused_fields=("min_p",)), {"min_p": 0.1}, "refuses model.min_p: min_p is not configured"),
        (Wire(), {"extra_body": {"documents": []}}, "extra_body.documents: guided answers are asked on the"),
        (Wire(tokenize=False), {"thinking": "on"}, "does not tokenise, so it is unknown"),
    ],
)
async def test_a_server_that_cannot_is_refused_by_name(wire: Wire, model: dict[str, Any], told: str) -> None:
    with serving(wire), pytest.raises(EngineError, match=told):
        async with reaching(wire, **model):
            pass


async def test_log_probabilities_take_no_extra_fields() -> None:
    with serving(Wire()) as wire, pytest.raises(EngineError, match="not sent where log-probabilities are read"):
        async with reaching(wire, EngineNeeds(logprobs=True), extra_body={"cache_salt": "a"}):
            pass


async def test_an_endpoint_behind_litellm_gets_the_fields_as_they_are() -> None:
    model = {"min_p": 0.2, "thinking": "off", "extra_body": {"cache_salt": "a"}, "stop": ("END",)}
    with serving(Wire()) as wire:
        async with reaching(wire, EngineNeeds(chat=True), engine="litellm", name="openai/tiny", **model) as engine:
            await complete(engine, ask())
    (body,) = wire.bodies("/v1/chat/completions")
    assert (body["min_p"], body["cache_salt"]) == (0.2, "a")
    assert body["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}


@pytest.mark.parametrize(
    ("wire", "model", "told"),
    [
        (Wire(refused_fields=("min_p",)), {"min_p": 0.1}, "refuses model.min_p"),
        (Wire(), {"thinking": 100}, "takes on or off"),
    ],
)
async def test_litellm_refuses_by_name_too(wire: Wire, model: dict[str, Any], told: str) -> None:
    with serving(wire), pytest.raises(EngineError, match=told):
        async with reaching(wire, EngineNeeds(chat=True), engine="litellm", name="openai/tiny", **model):
            pass


async def test_a_provider_whose_api_lacks_a_setting_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "unused")
    model = ModelSpec(engine="litellm", name="groq/llama-3.3-70b-versatile", thinking="off", api_key_env=None)
    with pytest.raises(EngineError, match=r"litellm cannot pass model\.thinking on to groq"):
        await build_engine(model, EngineNeeds(chat=True))


def test_providers_are_told_in_litellms_words() -> None:
    spec = ModelSpec(engine="litellm", name="anthropic/claude-sonnet-4-5", thinking=2048, extra_body={"service": 1})
    thinking = {"type": "enabled", "budget_tokens": 2048}
    assert hosted_fields(spec) == {"thinking": thinking, "extra_body": {"service": 1}}


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ({"engine": "vllm", "extra_body": {"api_key": "x"}}, "extra_body.api_key looks like a key"),
        ({"engine": "vllm", "extra_body": {"a": {"b": ["Bearer abcdefgh"]}}}, "extra_body.a.b.0 looks like a key"),
        ({"engine": "litellm", "name": "x/y", "extra_body": {"a": "sk-" + "a" * 20}}, "looks like a key"),
        ({"engine": "vllm", "extra_body": {"top_p": 1}}, "extra_body.top_p: set model.top_p instead"),
        ({"engine": "vllm", "extra_body": {"chat_template_kwargs": {"enable_thinking": 1}}}, "set model.thinking"),
        ({"engine": "vllm", "extra_body": {"messages": []}}, "extra_body.messages is set by programs"),
        ({"engine": "embedded", "extra_body": {"a": 1}}, "engine 'embedded' takes no extra_body: leave it out"),
        ({"engine": "scripted", "path": "x.yaml", "thinking": "on"}, "engine 'scripted' takes no thinking"),
        ({"engine": "./mine.py:Own", "min_p": 0.1, "temperature": 1}, "takes no min_p: hand it to your engine in args"),
        ({"min_p": 0.1}, "min_p change nothing at temperature 0"),
        ({"thinking": 10, "reasoning_effort": "none", "engine": "vllm"}, "turns thinking off, and thinking is 10"),
    ],
)
def test_a_spec_that_cannot_mean_it_is_refused(model: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        ModelSpec(**model)


def test_usual_fields_look_like_no_keys() -> None:
    fields = {"min_tokens": 1, "stop_token_ids": [2], "cache_salt": "a", "bad_words": [], "user_token_count": "x"}
    assert ModelSpec(engine="vllm", extra_body=fields).extra_body == fields


async def test_the_embedded_engine_thinks_as_long_as_it_may(thinking_model: Path) -> None:
    spec = ModelSpec(path=thinking_model, dtype="float32", thinking=12)
    engine = await asyncio.to_thread(EmbeddedEngine, spec)
    try:
        story = "Tell me a long story."
        replies = [complete_blocking(engine, ask(story, temperature=0.0, max_tokens=size)) for size in (40, 10)]
        drawn = complete_blocking(engine, ask(story, temperature=1.0, max_tokens=40))
        choice = complete_blocking(engine, ask(choices=["1", "2"], prefill="<think>\nIt is 2.\n</think>\n\n{Answer: "))
    finally:
        await engine.aclose()
    for reply in (replies[0], drawn):
        thinking, closed, said = reply.text.removeprefix("<think>").partition("</think>")
        assert closed, reply.text
        assert (said[:2], thinking[-1]) == ("\n\n", "\n")
        assert reply.usage.reasoning_tokens <= 13
    assert (replies[1].finish_reason, replies[1].usage.reasoning_tokens) == ("length", 10)
    assert replies[1].text.startswith("<think>")
    assert "</think>" not in replies[1].text
    assert (choice.text in ("1", "2"), choice.usage.reasoning_tokens) == (True, None)


async def test_the_embedded_engine_chooses_behind_a_closed_block(thinking_model: Path) -> None:
    """Its template opens a block; the prompt of a choice is as long as if thinking were off."""
    sizes = []
    for thinking in (None, "off"):
        engine = await asyncio.to_thread(
            EmbeddedEngine, ModelSpec(path=thinking_model, dtype="float32", thinking=thinking)
        )
        choice = complete_blocking(engine, ask(choices=["1", "2"], prefill="{Answer: ", temperature=0.0))
        sizes.append((choice.usage.input_tokens, engine.info().details.get("open_thinking")))
        await engine.aclose()
    (opened, recorded), (closed, nothing) = sizes
    assert opened == closed
    assert (recorded, nothing) == ("closed before a choice", None)


async def test_min_p_draws_from_fewer_tokens(thinking_model: Path) -> None:
    spec = ModelSpec(path=thinking_model, dtype="float32", thinking="off", temperature=2.0)
    replies = {}
    for min_p in (None, 1.0):
        engine = await asyncio.to_thread(EmbeddedEngine, spec.model_copy(update={"min_p": min_p}))
        replies[min_p] = {complete_blocking(engine, ask(temperature=2.0, seed=seed)).text for seed in range(3)}
        greedy = complete_blocking(engine, ask(temperature=0.0)).text
        await engine.aclose()
    assert len(replies[None]) == 3
    assert replies[1.0] == {greedy}, "at 1 only the likeliest token is left"


def test_the_embedded_engine_refuses_what_its_template_cannot_say(thinking_model: Path, tiny_llama: Path) -> None:
    with pytest.raises(EngineError, match=r"does not take model\.reasoning_effort"):
        EmbeddedEngine(ModelSpec(path=thinking_model, dtype="float32", reasoning_effort="low"))
    with pytest.raises(EngineError, match=r"does not take model\.thinking"):
        EmbeddedEngine(ModelSpec(path=tiny_llama, dtype="float32", thinking="on"))
    EmbeddedEngine(ModelSpec(path=thinking_model, dtype="float32", thinking="off"))
