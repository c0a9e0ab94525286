"""The vLLM engine against a live server: real tokens, real grammar, real refusals."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from engine_calls import GUIDED, ask, replies, reply

from medexam.cli import load_command
from medexam.datasets import load_exam_set
from medexam.errors import ContextLengthError
from medexam.model_calls import Dialogue, Generation
from medexam.serve import Engine, build_engine, load_template
from medexam.specs import DatasetSpec, ModelSpec

pytestmark = pytest.mark.vllm

SYSTEM = "You are an expert in the Spanish residency exams. Answer as {Answer: n}."


def questions(language: str, number: int) -> list[Dialogue]:
    exams = load_exam_set(DatasetSpec(name="headqa_sample", language=language))
    asked = []
    for question in exams.questions[:number]:
        choices = [str(option.number) for option in question.options]
        asked.append(ask(question.printed, system=SYSTEM, opening="{Answer: ", choices=choices))
    return asked


async def answers(engine: Any, asked: list[Dialogue]) -> list[str]:
    found = await replies(engine, asked)
    assert all(one.finish_reason == "stop" for one in found)
    assert all(one.prompt_tokens for one in found)
    return [one.words for one in found]


def same(first: list[str], second: list[str]) -> float:
    """The share of answers that are equal."""
    return sum(one == other for one, other in zip(first, second, strict=True)) / len(first)


@pytest.mark.parametrize("language", ["en", "es"])
async def test_every_choice_is_legal_by_prefill_and_by_schema(engine, limited, language: str) -> None:
    asked = questions(language, 30)
    by_prefill = await answers(engine, asked)
    assert engine.info().guided_by == "prefill"
    assert all(answer in one.choices for answer, one in zip(by_prefill, asked, strict=True))
    assert len(set(by_prefill)) > 1
    async with limited(unheard=("allowed_token_ids",)) as slower:
        by_schema = await answers(slower, asked)
        assert slower.info().guided_by == "structured_outputs"
    assert all(answer in one.choices for answer, one in zip(by_schema, asked, strict=True))


async def test_a_schema_on_the_chat_endpoint_keeps_the_promise_without_a_renderer(engine, limited) -> None:
    asked = questions("en", 12)
    async with limited(missing=("/tokenize", "/detokenize")) as blind:
        by_chat = await answers(blind, asked)
    assert all(answer in one.choices for answer, one in zip(by_chat, asked, strict=True))


async def test_choices_of_several_tokens(engine: Engine) -> None:
    choices = ["certainly relevant", "not relevant at all"]
    assert (await reply(engine, ask("Is water wet?", choices=choices, max_tokens=None))).text in choices


async def test_a_free_reply_goes_on_from_its_opening_words(engine: Engine) -> None:
    found = await reply(engine, ask("What is the capital of France?", opening="The capital of France is", max_tokens=4))
    assert (found.text or "").lstrip().startswith("Paris")


async def test_stop_words_and_sampling_reach_the_server(engine: Engine) -> None:
    text = "Say: one, two, three."
    assert "," not in (await reply(engine, ask(text, max_tokens=40, stop=(",",)))).words
    twice = [await reply(engine, ask(text, temperature=1.0, seed=3, max_tokens=12)) for _ in range(2)]
    assert twice[0].text == twice[1].text


async def test_a_prompt_that_does_not_fit(engine: Engine) -> None:
    context = engine.info().max_context
    assert context is not None
    long = "word " * (2 * context)
    with pytest.raises(ContextLengthError):
        await reply(engine, ask(long))
    first, second, third = questions("en", 3)
    too_long = second._replace(messages=[{"role": "user", "content": long}])
    asked = (reply(engine, one) for one in (first, too_long, third))
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in found] == [Generation, ContextLengthError, Generation]


async def test_local_and_server_rendering_are_the_same(
    capabilities: Any, endpoint: str, headers: dict[str, str]
) -> None:
    local = load_template(capabilities.source or "")
    if local is None:
        pytest.skip("the model's files are not on this machine")
    async with httpx.AsyncClient(timeout=600.0, headers=headers) as client:
        for one in questions("es", 10):
            body = {"model": capabilities.model, "messages": one.messages, "add_generation_prompt": True}
            tokenized = await client.post(f"{endpoint.removesuffix('/v1')}/tokenize", json=body)
            assert await local.tokens(await local.render(one.messages)) == tokenized.json()["tokens"]


async def test_merged_words_are_read(limited) -> None:
    async with limited(takes_system=False) as merging:
        assert merging.info().system_turn == "merged"
        found = await answers(merging, questions("en", 4))
    assert all(one in "12345" for one in found)


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
async def test_the_litellm_engine_reaches_it_too(endpoint: str, engine: Engine, provider: str) -> None:
    name = f"{provider}/{engine.info().model}"
    spec = ModelSpec(engine="litellm", name=name, endpoints=(endpoint,), api_key_env="VLLM_API_KEY")
    hosted = await build_engine(spec, GUIDED)
    asked = questions("en", 4)
    texts = await answers(hosted, asked)
    assert all(text in one.choices for text, one in zip(texts, asked, strict=True))
    assert (await reply(hosted, ask("What is the capital of France?"))).text
    await hosted.aclose()


def test_doctor_says_what_is_honoured(endpoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = load_command("doctor")
    with command.make_context("doctor", [endpoint, "--json"]) as context:
        command.invoke(context)
    (document,) = json.loads(capsys.readouterr().out)["endpoints"]
    honoured = ("renders", "allowed_token_ids", "names_tokens", "tokenizes", "system_turn")
    assert {name: document[name] for name in honoured} == dict.fromkeys(honoured, True)
    assert (document["guided_by"], document["reads"]) == ("prefill", ["echo", "label"])
    assert (document["thinks"], document["advice"]) == (False, [])


async def test_free_replies_that_travel_together_are_those_of_the_chat_endpoint(
    engine: Engine, endpoint: str, headers: dict[str, str]
) -> None:
    asked = ["Which organ pumps blood?", "Name one vitamin.", "¿Qué es una neurona?", "Say hello."]
    found = await replies(engine, [ask(text, max_tokens=12) for text in asked])
    said = []
    async with httpx.AsyncClient(timeout=600.0, headers=headers) as client:
        for text, one in zip(asked, found, strict=True):
            messages = [{"role": "user", "content": text}]
            body = {"model": engine.info().model, "messages": messages, "temperature": 0.0, "max_tokens": 12}
            alone = (await client.post(f"{endpoint}/chat/completions", json=body)).json()
            assert one.prompt_tokens == alone["usage"]["prompt_tokens"]
            said.append(alone["choices"][0]["message"]["content"])
            if one.words == said[-1]:
                assert one.completion_tokens == alone["usage"]["completion_tokens"]
                assert one.finish_reason == alone["choices"][0]["finish_reason"]
    # What a prompt shares its batch with changes the rounding, which now and then decides between two tokens.
    assert same([one.words for one in found], said) >= 0.75


async def test_what_only_the_chat_endpoint_takes_goes_there(engine: Engine) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "boolean"}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "truth", "schema": schema}}
    asked = ask("Give a truth value as JSON.", max_tokens=48, more={"fields": {"response_format": form}})
    assert set(json.loads((await reply(engine, asked)).words)) == {"n"}
