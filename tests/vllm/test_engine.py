"""The vLLM engine against a live server: real tokens, real grammar, real refusals."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import httpx
import pytest
from dspy.lm15 import Config, Message, Request, Response

from asked import complete, complete_blocking
from medexam.cli import load_command
from medexam.datasets import load_exam_set
from medexam.dspy_requests import CHOICE
from medexam.errors import ContextLengthError, EndpointUnreachableError
from medexam.serve import Capabilities, Engine, VLLMEngine, background_loop, build_engine, normalise_address
from medexam.serve.discovery.finder import named_endpoints
from medexam.serve.engines.prompt_text import ServerRenderer
from medexam.serve.local_model.template import LocalTemplate
from medexam.serve.pool.server_pool import ServerPool
from medexam.signatures import render_question
from medexam.specs import DatasetSpec, EngineNeeds, ModelSpec

pytestmark = pytest.mark.vllm

SYSTEM = "You are an expert in the Spanish residency exams. Answer as {Answer: n}."


@dataclass
class Asked:
    request: Request
    choices: list[str]


def questions(language: str, number: int) -> list[Asked]:
    exams = load_exam_set(DatasetSpec(name="headqa_sample", language=language))
    asked = []
    for question in exams.questions[:number]:
        choices = [str(option.number) for option in question.options]
        messages = (Message.user(render_question(question)), Message.assistant("{Answer: "))
        config = Config(temperature=0.0, max_tokens=8, extensions={CHOICE: choices})
        asked.append(Asked(Request(model="served", system=SYSTEM, messages=messages, config=config), choices))
    return asked


def free(text: str, max_tokens: int = 12, prefill: str = "") -> Request:
    messages = [Message.user(text), *([Message.assistant(prefill)] if prefill else [])]
    return Request(model="served", messages=tuple(messages), config=Config(temperature=0.0, max_tokens=max_tokens))


async def answers(engine: Any, asked: list[Asked]) -> list[str | None]:
    replies: list[Response] = await asyncio.gather(*(complete(engine, one.request) for one in asked))
    assert all(reply.finish_reason == "stop" for reply in replies)
    assert all(reply.usage.input_tokens for reply in replies)
    return [reply.text for reply in replies]


@pytest.fixture
async def engine(endpoint: str) -> AsyncIterator[Engine]:
    built = await build_engine(ModelSpec(engine="vllm", endpoints=(endpoint,)), EngineNeeds(guided=True))
    yield built
    await built.aclose()


@pytest.fixture
def limited(endpoint: str, capabilities: Capabilities) -> Callable[..., Awaitable[VLLMEngine]]:
    """`await limited(renderer=..., FIELD=VALUE)` -> an engine that believes less of the server than it honours."""

    async def build(renderer: bool, fewer: Capabilities) -> VLLMEngine:
        servers = ServerPool(named_endpoints(ModelSpec(engine="vllm", endpoints=(endpoint,))), 600.0)
        return VLLMEngine(servers, [fewer], ServerRenderer(servers.available, fewer.model) if renderer else None)

    async def call(*, renderer: bool, **changes: Any) -> VLLMEngine:
        return await background_loop().run_async(build(renderer, capabilities.model_copy(update=changes)))

    return call


@pytest.mark.parametrize("language", ["en", "es"])
async def test_every_choice_is_legal_and_the_same_by_prefill_and_by_grammar(
    engine: Engine, limited: Callable[..., Awaitable[VLLMEngine]], language: str
) -> None:
    asked = questions(language, 30)
    by_prefill = await answers(engine, asked)
    assert engine.info().guided_by == "prefill"
    assert all(answer in one.choices for answer, one in zip(by_prefill, asked, strict=True))
    assert len(set(by_prefill)) > 1
    slower = await limited(renderer=True, allowed_token_ids=False)
    by_grammar = await answers(slower, asked)
    assert slower.info().guided_by == "structured_outputs"
    await background_loop().run_async(slower.close())
    assert _same(by_prefill, by_grammar) >= 0.95, "bfloat16 ties may flip with the make-up of a batch, no more"


async def test_a_grammar_on_the_chat_endpoint_keeps_the_promise_without_a_renderer(
    engine: Engine, limited: Callable[..., Awaitable[VLLMEngine]]
) -> None:
    asked = questions("en", 12)
    blind = await limited(renderer=False, renders=False)
    by_chat = await answers(blind, asked)
    await background_loop().run_async(blind.close())
    assert all(answer in one.choices for answer, one in zip(by_chat, asked, strict=True))
    assert _same(await answers(engine, asked), by_chat) >= 0.9


async def test_choices_of_several_tokens(engine: Engine) -> None:
    config = Config(temperature=0.0, extensions={CHOICE: ["certainly relevant", "not relevant at all"]})
    request = Request(model="served", messages=(Message.user("Is water wet?"),), config=config)
    assert (await complete(engine, request)).text in ("certainly relevant", "not relevant at all")


async def test_free_replies(engine: Engine) -> None:
    reply = await complete(engine, free("Write: hello.", 24))
    assert reply.text
    assert reply.usage.output_tokens
    assert reply.model == engine.info().model
    cut = await complete(engine, free("Count from one to a hundred.", 5))
    assert (cut.finish_reason, cut.usage.output_tokens) == ("length", 5)


async def test_a_free_reply_goes_on_from_its_opening_words(engine: Engine) -> None:
    reply = await complete(engine, free("What is the capital of France?", 4, prefill="The capital of France is"))
    assert reply.text is not None
    assert reply.text.lstrip().startswith("Paris")


async def test_stop_words_and_sampling_reach_the_server(engine: Engine) -> None:
    messages = (Message.user("Say: one, two, three."),)
    stopped = Request(model="served", messages=messages, config=Config(temperature=0.0, max_tokens=40, stop=(",",)))
    assert "," not in ((await complete(engine, stopped)).text or "")
    config = Config(temperature=1.0, seed=3, max_tokens=12)
    twice = [await complete(engine, Request(model="served", messages=messages, config=config)) for _ in range(2)]
    assert twice[0].text == twice[1].text


async def test_a_prompt_that_does_not_fit(engine: Engine) -> None:
    context = engine.info().max_context
    assert context is not None
    long = "word " * (2 * context)
    with pytest.raises(ContextLengthError):
        await complete(engine, free(long))
    asked = questions("en", 3)
    config = asked[0].request.config
    too_long = Request(model="served", messages=(Message.user(long), Message.assistant("{Answer: ")), config=config)
    replies = await asyncio.gather(
        *(complete(engine, one) for one in [asked[0].request, too_long, asked[1].request]), return_exceptions=True
    )
    assert [type(reply) for reply in replies] == [Response, ContextLengthError, Response]


async def test_local_and_server_rendering_are_the_same(engine: Engine, endpoint: str) -> None:
    remote = cast(Any, engine)
    if not isinstance(remote.renderer, LocalTemplate):
        pytest.skip("the model's files are not on this machine")
    server = ServerRenderer(remote.pool.available, remote.model)
    for one in questions("es", 10):
        turns = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": one.request.messages[0].text or ""}]
        text = await remote.renderer.render(turns)
        assert text == await server.render(turns)
        assert await remote.renderer.tokens(text) == await server.dialogue_tokens(turns)
    await server.aclose()


async def test_merged_words_are_read(limited: Callable[..., Awaitable[VLLMEngine]]) -> None:
    merging = await limited(renderer=True, system_turn=False)
    assert merging.info().system_turn == "merged"
    replies = await answers(merging, questions("en", 4))
    await background_loop().run_async(merging.close())
    assert all(reply in "12345" for reply in replies if reply)


def test_any_event_loop_and_none(endpoint: str) -> None:
    spec = ModelSpec(engine="vllm", endpoints=(endpoint,))
    engine = asyncio.run(build_engine(spec, EngineNeeds(guided=True)))
    one = questions("en", 1)[0]
    texts = [asyncio.run(complete(engine, one.request)).text, complete_blocking(engine, one.request).text]
    asyncio.run(engine.aclose())
    assert texts[0] == texts[1]


async def test_another_model_and_the_version(endpoint: str, engine: Engine) -> None:
    with pytest.raises(EndpointUnreachableError, match=r"not no-such-model; correct model\.name"):
        await build_engine(ModelSpec(engine="vllm", name="no-such-model", endpoints=(endpoint,)))
    version = httpx.get(f"{normalise_address(endpoint).removesuffix('/v1')}/version").json()["version"]
    info = engine.info()
    assert info.server_version == f"vllm {version}"
    assert info.chat_template is None or len(info.chat_template) == 64


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
async def test_the_litellm_engine_reaches_it_too(endpoint: str, engine: Engine, provider: str) -> None:
    spec = ModelSpec(
        engine="litellm",
        name=f"{provider}/{engine.info().model}",
        endpoints=(endpoint,),
        api_key_env="VLLM_API_KEY",
    )
    hosted = await build_engine(spec, EngineNeeds(guided=True))
    asked = questions("en", 4)
    texts = await answers(hosted, asked)
    assert all(text in one.choices for text, one in zip(texts, asked, strict=True))
    assert (await complete(hosted, free("What is the capital of France?"))).text
    await hosted.aclose()


def test_doctor_says_what_is_honoured(endpoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = load_command("doctor")
    with command.make_context("doctor", [endpoint, "--burst", "8", "--json"]) as context:
        command.invoke(context)
    (document,) = json.loads(capsys.readouterr().out)["endpoints"]
    honoured = (
        "renders",
        "allowed_token_ids",
        "structured_outputs",
        "list_prompts",
        "named_logprobs",
        "masked_logprobs",
        "tokenizes",
        "system_turn",
    )
    assert {name: bool(document[name]) for name in honoured} == dict.fromkeys(honoured, True)
    assert document["guided_by"] == "prefill"
    assert document["burst"]["tokens_per_s"] == pytest.approx(16 * document["burst"]["prompts_per_s"], rel=0.01)
    assert document["clock_ahead_s"] == 0
    assert document["call_s"] > 0


def _same(first: list[str | None], second: list[str | None]) -> float:
    """The share of answers that are equal."""
    return sum(one == other for one, other in zip(first, second, strict=True)) / len(first)


async def test_free_replies_that_travel_together_are_those_of_the_chat_endpoint(
    engine: Engine, endpoint: str, headers: dict[str, str]
) -> None:
    asked = ["Which organ pumps blood?", "Name one vitamin.", "¿Qué es una neurona?", "Say hello."]
    replies = await asyncio.gather(*(complete(engine, free(text)) for text in asked))
    remote = cast(VLLMEngine, engine)
    assert remote.renderer is not None
    assert not remote.renderer.may_reason
    said = []
    async with httpx.AsyncClient(timeout=600.0, headers=headers) as client:
        for text, reply in zip(asked, replies, strict=True):
            body = {"messages": [{"role": "user", "content": text}], "temperature": 0.0, "max_tokens": 12}
            alone = (await client.post(f"{endpoint}/chat/completions", json=body)).json()
            assert reply.usage.input_tokens == alone["usage"]["prompt_tokens"]
            said.append(alone["choices"][0]["message"]["content"])
            if reply.text == said[-1]:
                assert reply.usage.output_tokens == alone["usage"]["completion_tokens"]
                assert reply.finish_reason == alone["choices"][0]["finish_reason"]
    # What a prompt shares its batch with changes the rounding, which now and then decides between two tokens.
    assert _same([reply.text for reply in replies], said) >= 0.75


async def test_what_only_the_chat_endpoint_takes_goes_there(engine: Engine) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "boolean"}}, "required": ["n"]}
    request = free("Give a truth value as JSON.", max_tokens=48)
    config = Config(temperature=0.0, max_tokens=48, response_format={"type": "json_schema", "schema": schema})
    reply = await complete(engine, Request(model="served", messages=request.messages, config=config))
    assert set(json.loads(reply.text or "")) == {"n"}
