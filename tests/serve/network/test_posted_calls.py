"""Calls without litellm: the request that litellm would send, and the reply or the error that it would read."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from wire_server import Wire, serving

from medexam.errors import CallError
from medexam.model_calls import Generation
from medexam.serve import TIMING, LiteLLMEngine, background_loop, build_engine
from medexam.serve.engines.posted_calls import renames_fields
from medexam.specs import ModelSpec

FIELDS: list[dict[str, Any]] = [
    {"temperature": 0.7, "top_p": 0.9, "seed": 3, "max_tokens": 7, "stop": ["\n"]},
    {"top_k": 5, "max_completion_tokens": 9},
    {"response_format": {"type": "json_object"}, "allowed_openai_params": ["response_format"]},
    {
        "tools": [{"type": "function", "function": {"name": "choose", "parameters": {}}}],
        "tool_choice": "auto",
    },
    {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}, "temperature": 0.5}, "temperature": 0.1},
    {"tool_choice": "auto"},
]
MESSAGES: list[dict[str, Any]] = [
    {"content": "1"},
    {"content": "<think>One.</think>1"},
    {"content": "<b>1</b>"},
    {"content": "1", "reasoning_content": "One."},
    {"content": "1", "reasoning": "One."},
    {"content": None, "refusal": "No."},
    {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
]
ERRORS: list[Any] = [
    {"message": "slow down", "code": 429},
    {"message": "The maximum context length is 8 tokens", "code": 400},
    {"code": "odd"},
    "out of order",
]


@dataclass
class ChattyWire(Wire):
    """Answers every chat with one message, or with an error in a reply of status 200."""

    message: Mapping[str, Any] = field(default_factory=lambda: {"content": "1"})
    error: Any = None

    def _chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, reply = super()._chat(body)
        reply["choices"][0]["message"] = {"role": "assistant", **self.message}
        return status, {"error": self.error} if self.error else reply


@asynccontextmanager
async def reaching(wire: Wire) -> AsyncIterator[LiteLLMEngine]:
    engine = await build_engine(ModelSpec(engine="litellm", name="openai/tiny", endpoints=(wire.address,)))
    assert isinstance(engine, LiteLLMEngine)
    try:
        yield engine
    finally:
        await engine.aclose()


async def ask_both(engine: LiteLLMEngine, fields: dict[str, Any]) -> tuple[Any, Any]:
    """Return what is read without litellm and with it: a reply, or an error's type."""
    posted = await _ask(engine, fields)
    engine._posted_as = None
    return posted, await _ask(engine, fields)


async def _ask(engine: LiteLLMEngine, fields: dict[str, Any]) -> Generation | type[CallError]:
    call = {"messages": [{"role": "user", "content": "Which?"}], **fields}
    try:
        return await background_loop().run_async(engine.chat(call))
    except CallError as error:
        return type(error)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 1)


async def test_a_request_is_the_one_that_litellm_sends() -> None:
    with serving(Wire(forms=("json_schema", "json_object"))) as wire:
        for fields in FIELDS:
            async with reaching(wire) as engine:
                wire.requests.clear()
                await ask_both(engine, fields)
                posted, sent = wire.bodies("/v1/chat/completions")
            assert posted == sent


async def test_a_reply_is_read_as_litellm_reads_it() -> None:
    with serving(ChattyWire()) as wire:
        async with reaching(wire) as engine:
            for message in MESSAGES:
                wire.message = message
                engine._posted_as = "tiny"
                posted, read = await ask_both(engine, {})
                assert posted.source.message == read.source.message
                # litellm has its own words for why a reply ends.
                told = [replace(one, source=None, finish_reason="") for one in (posted, read)]
                assert told[0] == told[1]


async def test_an_error_within_a_reply_is_the_one_that_litellm_raises() -> None:
    with serving(ChattyWire()) as wire:
        async with reaching(wire) as engine:
            for wire.error in ERRORS:
                engine._posted_as = "tiny"
                posted, raised = await ask_both(engine, {})
                assert posted == raised


@pytest.mark.parametrize(("name", "renames"), [("gpt-5-mini", True), ("o3", True), ("gpt-4o", True), ("tiny", False)])
def test_litellm_renames_fields_of_the_models_that_it_knows(name: str, renames: bool) -> None:
    assert renames_fields(name) is renames
