"""The hosted engines against a server that speaks the wire: what is sent, what comes back, what goes wrong."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dspy.lm15 import Config, Message, Request, Response, TextPart, ThinkingPart
from other_servers import TGI, Ollama
from wire_server import HeldWire, Wire, serving

from asked import complete, complete_blocking
from medexam.dspy_requests import CHOICE, PLAIN
from medexam.errors import (
    AnswerFormatError,
    AuthError,
    CallError,
    ContextLengthError,
    EndpointUnreachableError,
    EngineError,
    InvalidRequestError,
    RateLimitError,
    ServerError,
    TransportError,
    UnsupportedFeatureError,
    UnsupportedModelError,
)
from medexam.serve import TIMING, Engine, build_engine
from medexam.serve.pool.adaptive_limit import INITIAL
from medexam.specs import EngineNeeds, ModelSpec
from waiting import soon

CHOICES = ["1", "2", "3", "4"]


def ask(
    text: str = "Which?", *, prefill: str = "{Answer: ", choices: list[str] | None = CHOICES, system: str | None = "Be"
) -> Request:
    messages = [Message.user(text), *([Message.assistant(prefill)] if prefill else [])]
    extensions = None if choices is None else {CHOICE: choices}
    config = Config(temperature=0.0, max_tokens=8, extensions=extensions)
    return Request(model="m", system=system, messages=tuple(messages), config=config)


def prompts(body: dict[str, Any]) -> list[str]:
    """The prompts of a request; litellm sends a list of one as a string."""
    return body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]


@asynccontextmanager
async def reaching(*wires: Wire, guided: bool = False) -> AsyncIterator[Engine]:
    engine = await build_engine(
        ModelSpec(engine="vllm", endpoints=tuple(wire.address for wire in wires)), EngineNeeds(guided=guided)
    )
    try:
        yield engine
    finally:
        await engine.aclose()


async def test_choices_travel_together_as_next_tokens() -> None:
    with serving(Wire()) as wire:
        async with reaching(wire, guided=True) as engine:
            wire.requests.clear()
            replies = await asyncio.gather(*(complete(engine, ask("x" * n)) for n in range(1, 21)))
            info = engine.info()
    assert {reply.text for reply in replies} == set(CHOICES)
    assert all(reply.finish_reason == "stop" for reply in replies)
    prompt = "<s>Be\n<u>x\n<a>{Answer: "
    assert (replies[0].usage.input_tokens, replies[0].usage.output_tokens) == (len(prompt), 1)
    bodies = wire.bodies("/v1/completions")
    assert len(bodies) < 20
    assert prompt in [one for body in bodies for one in prompts(body)]
    assert sum(len(prompts(body)) for body in bodies) == 20
    sent = {key: bodies[0][key] for key in ("max_tokens", "allowed_token_ids", "add_special_tokens", "temperature")}
    assert sent == {
        "max_tokens": 1,
        "allowed_token_ids": [49, 50, 51, 52],
        "add_special_tokens": False,
        "temperature": 0,
    }
    assert (info.guided_by, info.system_turn, info.model) == ("prefill", "kept", "tiny")


async def test_different_choices_are_never_mixed() -> None:
    with serving(Wire()) as wire:
        async with reaching(wire, guided=True) as engine:
            wire.requests.clear()
            kinds = [CHOICES, [*CHOICES, "5"]]
            await asyncio.gather(*(complete(engine, ask("x" * n, choices=kinds[n % 2])) for n in range(1, 21)))
    for body in wire.bodies("/v1/completions"):
        assert len({len(prompt) % 2 for prompt in prompts(body)}) == 1
        assert len(body["allowed_token_ids"]) in (4, 5)


async def test_without_token_ids_replies_are_read_as_text() -> None:
    with serving(Wire(token_ids=False)) as wire:
        async with reaching(wire, guided=True) as engine:
            reply = await complete(engine, ask())
    assert reply.text in CHOICES
    assert reply.usage.input_tokens == len("<s>Be\n<u>Which?\n<a>{Answer: ")


@pytest.mark.parametrize(
    ("wire", "choices"),
    [(Wire(allowed=False), CHOICES), (Wire(), ["yes", "no"]), (Wire(tokenize=False), CHOICES)],
    ids=["ignores allowed_token_ids", "choices of several tokens", "gateway without tokenize"],
)
async def test_a_grammar_stands_in_where_next_tokens_cannot(wire: Wire, choices: list[str]) -> None:
    with serving(wire):
        async with reaching(wire, guided=True) as engine:
            reply = await complete(engine, ask(choices=choices))
            assert engine.info().guided_by == "structured_outputs"
    assert reply.text in choices
    assert reply.finish_reason == "stop"


async def test_choices_that_nothing_can_enforce_are_refused() -> None:
    with serving(Wire(structured=False)) as wire:
        async with reaching(wire, guided=True) as engine:
            with pytest.raises(UnsupportedFeatureError, match="not single tokens"):
                await complete(engine, ask(choices=["yes", "no"]))


async def test_words_are_merged_where_the_template_refuses_turns() -> None:
    with serving(Wire(system=False)) as wire:
        async with reaching(wire) as engine:
            await complete(engine, ask(choices=None, prefill=""))
            assert engine.info().system_turn == "merged"
    assert wire.bodies("/v1/chat/completions")[-1]["messages"] == [{"role": "user", "content": "Be\n\nWhich?"}]


ZERO_SHOT = Request(
    model="m",
    system=[TextPart("")],
    messages=(Message.user("Told"), Message.user("Asked")),
    config=Config(max_tokens=8),
)
"""The turns of the paper's figure 6."""
REFUSING = [
    (Wire(), "<s>\n<u>Told\n<u>Asked\n<a>", ("kept", "kept")),
    (Wire(empty=False), "<u>Told\n<u>Asked\n<a>", ("kept", "left out")),
    (Wire(repeats=False), "<s>\n<u>Told\n\nAsked\n<a>", ("merged", "kept")),
    (Wire(system=False, repeats=False), "<u>Told\n\nAsked\n<a>", ("merged", "left out")),
]
"""A server, the prompt that its model reads, and what is recorded of both turns."""


@pytest.mark.parametrize(("wire", "prompt", "recorded"), REFUSING)
async def test_turns_that_a_template_refuses_are_joined_and_recorded(wire: Wire, prompt: str, recorded) -> None:
    with serving(wire):
        async with reaching(wire) as engine:
            wire.requests.clear()
            await complete(engine, ZERO_SHOT)
            details = engine.info().details
    (asked,) = (wire._render(body["messages"]) for body in wire.bodies("/v1/chat/completions"))
    assert asked == prompt
    assert (details["repeated_turns"], details["empty_system_turn"]) == recorded


async def test_a_base_model_continues_plain_text_and_is_asked_no_dialogue() -> None:
    with serving(Wire(chat=False)) as wire:
        with pytest.raises(
            EngineError, match=r"serves tiny, which has no chat template and takes no dialogue: name an"
        ):
            await build_engine(ModelSpec(engine="vllm", endpoints=(wire.address,)), EngineNeeds(chat=True))
        engine = await build_engine(ModelSpec(engine="vllm", endpoints=(wire.address,)), EngineNeeds(plain=True))
        wire.requests.clear()
        config = Config(temperature=0.0, max_tokens=8, stop=("\nSpanish:",), extensions={PLAIN: True})
        texts = ["Spanish:\nUno.\nEnglish:", "Spanish:\nDos.\nEnglish:"]
        requests = [Request(model="m", messages=(Message.user(text),), config=config) for text in texts]
        replies = await asyncio.gather(*(complete(engine, request) for request in requests))
        await engine.aclose()
    bodies = wire.bodies("/v1/completions")
    assert {one for body in bodies for one in prompts(body)} == set(texts)
    assert all(
        (body["stop"], body["add_special_tokens"], body["max_tokens"]) == (["\nSpanish:"], True, 8) for body in bodies
    )
    assert [reply.text for reply in replies] == ["x", "x"]


async def test_free_replies_use_the_chat_endpoint_and_keep_reasoning_apart() -> None:
    with serving(Wire(reasoning="Let me see.")) as wire:
        async with reaching(wire) as engine:
            reply = await complete(engine, ask(choices=None, prefill=""))
    assert reply.text == "hello"
    assert [part.text for part in reply.message.parts_of(ThinkingPart)] == ["Let me see."]
    body = wire.bodies("/v1/chat/completions")[-1]
    assert (body["max_tokens"], body["temperature"], body["model"]) == (8, 0, "tiny")


async def test_a_free_reply_goes_on_from_opening_words_exactly() -> None:
    with serving(Wire()) as wire:
        async with reaching(wire) as engine:
            reply = await complete(engine, ask(choices=None))
    assert reply.text == "x"
    assert wire.bodies("/v1/completions")[-1]["prompt"] == "<s>Be\n<u>Which?\n<a>{Answer: "


async def test_one_prompt_that_is_too_long_does_not_spoil_the_others() -> None:
    with serving(Wire(context=100)) as wire:
        async with reaching(wire, guided=True) as engine:
            texts = ["short", "x" * 200, "brief"]
            replies = await asyncio.gather(*(complete(engine, ask(t)) for t in texts), return_exceptions=True)
    assert isinstance(replies[1], ContextLengthError)
    assert all(isinstance(reply, Response) for reply in (replies[0], replies[2]))


@pytest.mark.parametrize(
    ("status", "error", "attempts"),
    [
        (429, RateLimitError, TIMING.attempts),
        (500, ServerError, TIMING.attempts),
        (503, ServerError, TIMING.attempts),
        (400, InvalidRequestError, 1),
        (401, AuthError, 1),
        (404, UnsupportedModelError, 1),
    ],
)
@pytest.mark.parametrize("choices", [CHOICES, None], ids=["guided", "free"])
async def test_faults_become_errors_that_dspy_knows_and_only_those_that_may_pass_are_asked_again(
    status: int, error: type[CallError], attempts: int, choices: list[str] | None
) -> None:
    with serving(Wire()) as wire:
        async with reaching(wire) as engine:
            path = "/v1/completions" if choices else "/v1/chat/completions"
            wire.refuse[path] = status
            wire.requests.clear()
            with pytest.raises(error):
                await complete(engine, ask(choices=choices, prefill="" if choices is None else "{Answer: "))
    assert len(wire.bodies(path)) == attempts


@pytest.mark.parametrize("choices", [CHOICES, None], ids=["guided", "free"])
async def test_a_lost_connection_is_a_transport_error(choices: list[str] | None) -> None:
    with serving(Wire()) as wire:
        async with reaching(wire) as engine:
            wire.drop = True
            with pytest.raises(TransportError):
                await complete(engine, ask(choices=choices, prefill="" if choices is None else "{Answer: "))


async def test_two_servers_share_the_work_and_a_failing_one_rests() -> None:
    with serving(HeldWire()) as one, serving(HeldWire()) as two:
        async with reaching(one, two) as engine:
            assert engine.concurrency == 2 * INITIAL
            for wire in (one, two):
                wire.requests.clear()
                wire.free.clear()
            asked = [asyncio.create_task(complete(engine, ask(choices=None, prefill=""))) for _ in range(10)]
            await soon(lambda: [len(wire.bodies("/v1/chat/completions")) for wire in (one, two)] == [5, 5])
            for wire in (one, two):
                wire.free.set()
            await asyncio.gather(*asked)
            one.refuse["/v1/chat/completions"] = 503
            free = ask(choices=None, prefill="")
            replies = [await complete(engine, free) for _ in range(6)]
            assert len(one.bodies("/v1/chat/completions")) <= 6
    assert [reply.text for reply in replies] == ["hello"] * 6


def test_any_event_loop_and_none() -> None:
    with serving(Wire()) as wire:
        spec = ModelSpec(engine="vllm", endpoints=(wire.address,))
        engine = asyncio.run(build_engine(spec, EngineNeeds(guided=True)))
        replies = [asyncio.run(complete(engine, ask())) for _ in range(2)]
        replies.append(complete_blocking(engine, ask()))
        thread = threading.Thread(target=lambda: replies.append(complete_blocking(engine, ask())))
        thread.start()
        thread.join()
        asyncio.run(engine.aclose())
    assert len({reply.text for reply in replies}) == 1


class TestLiteLLM:
    async def build(self, wire: Wire, guided: bool, name: str = "hosted_vllm/tiny") -> Engine:
        spec = ModelSpec(engine="litellm", name=name, endpoints=(wire.address,))
        return await build_engine(spec, EngineNeeds(guided=guided))

    @pytest.mark.parametrize("name", ["hosted_vllm/tiny", "openai/tiny"])
    async def test_choices_are_asked_as_a_schema(self, name: str) -> None:
        with serving(Wire()) as wire:
            engine = await self.build(wire, guided=True, name=name)
            reply = await complete(engine, ask())
            assert engine.info().guided_by == "structured_outputs"
            await engine.aclose()
        assert reply.text == "4"
        assert wire.bodies("/v1/chat/completions")[-1]["messages"][-1] == {"role": "assistant", "content": "{Answer: "}

    @pytest.mark.parametrize(("wire", "prompt", "recorded"), REFUSING)
    async def test_turns_that_it_refuses(self, wire: Wire, prompt: str, recorded) -> None:
        with serving(wire):
            engine = await self.build(wire, guided=False)
            wire.requests.clear()
            await complete(engine, ZERO_SHOT)
            details = engine.info().details
            await engine.aclose()
        (asked,) = (wire._render(body["messages"]) for body in wire.bodies("/v1/chat/completions"))
        assert asked == prompt
        assert (details["repeated_turns"], details["empty_system_turn"]) == recorded

    async def test_plain_text_is_refused(self) -> None:
        with serving(Wire()) as wire:
            spec = ModelSpec(engine="litellm", name="hosted_vllm/tiny", endpoints=(wire.address,))
            with pytest.raises(EngineError, match=r"cannot continue plain text; use model\.engine vllm"):
                await build_engine(spec, EngineNeeds(plain=True))

    async def test_free_replies(self) -> None:
        with serving(Wire()) as wire:
            engine = await self.build(wire, guided=False)
            assert (await complete(engine, ask(choices=None, prefill=""))).text == "hello"
            with pytest.raises(UnsupportedFeatureError, match="continue given words"):
                await complete(engine, ask(choices=None))
            await engine.aclose()

    async def test_a_provider_that_ignores_the_schema_is_refused(self) -> None:
        deaf = Wire(schema=False)
        with serving(deaf), pytest.raises(AnswerFormatError, match="answer_format to free"):
            await self.build(deaf, guided=True)

    @pytest.mark.parametrize("status", [422, 500])
    async def test_an_older_form_of_schema_where_the_newer_is_refused(self, status: int) -> None:
        with serving(Wire(forms=("json_object",), form_status=status)) as wire:
            engine = await self.build(wire, guided=True)
            assert (await complete(engine, ask())).text == "4"
            await engine.aclose()
        asked = [body["response_format"] for body in wire.bodies("/v1/chat/completions") if "response_format" in body]
        assert list(dict.fromkeys(form["type"] for form in asked)) == ["json_schema", "json_object"]
        assert asked[-1]["type"] == "json_object"

    @pytest.mark.parametrize(("wire", "form"), [(TGI(), "value"), (Ollama(), "json_schema")])
    async def test_servers_that_are_no_vllm_are_held_to_a_choice(self, wire: Wire, form: str) -> None:
        with serving(wire):
            engine = await self.build(wire, guided=True, name="openai/tiny")
            assert (await complete(engine, ask())).text == "4"
            await engine.aclose()
        assert form in wire.bodies("/v1/chat/completions")[-1]["response_format"]

    async def test_a_server_that_dies_under_the_schema(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Dying(Wire):
            def _refusal(self, body):
                self.drop = True
                return super()._refusal(body)

        monkeypatch.setattr(TIMING, "attempts", 2)
        with (
            serving(Dying()) as wire,
            pytest.raises(EndpointUnreachableError, match="answered, then stopped answering") as caught,
        ):
            await self.build(wire, guided=True, name="openai/tiny")
        assert "\n" not in str(caught.value)
        with pytest.raises(EndpointUnreachableError, match="openai/tiny does not answer: "):
            await self.build(wire, guided=True, name="openai/tiny")

    async def test_a_refusal_is_not_called_ignoring(self) -> None:
        refusing = Wire(forms=())
        with serving(refusing), pytest.raises(AnswerFormatError) as caught:
            await self.build(refusing, guided=True)
        assert "json_schema is refused" in str(caught.value)
        assert "json_object is refused" in str(caught.value)
        assert "unexpected type" in str(caught.value)
        assert "json_schema is ignored" not in str(caught.value)

    @pytest.mark.parametrize("status", [401, 402, 403, 404])
    async def test_a_refused_key_or_model_is_not_called_a_refused_schema(self, status: int) -> None:
        refusing = Wire(refuse={"/v1/chat/completions": status})
        with serving(refusing), pytest.raises(EngineError, match="openai/tiny takes no request: ") as caught:
            await self.build(refusing, guided=True, name="openai/tiny")
        assert "answer_format" not in str(caught.value)

    async def test_a_server_that_answers_nothing_is_not_called_refusing_a_schema(self) -> None:
        broken = Wire(refuse={"/v1/chat/completions": 500})
        with serving(broken), pytest.raises(EndpointUnreachableError, match="openai/tiny does not answer: "):
            await self.build(broken, guided=True, name="openai/tiny")

    async def test_a_model_that_takes_no_temperature(self) -> None:
        with serving(Wire()) as wire, pytest.raises(EngineError, match=r"of 0: set model\.temperature: 1 \("):
            await self.build(wire, guided=False, name="openai/o1-pro")
        assert wire.requests == []

    @pytest.mark.parametrize("path", ["/v1beta/openai", "/api/paas/v4"])
    async def test_a_path_that_does_not_end_in_v1(self, path: str) -> None:
        class Elsewhere(Wire):
            def reply(self, asked, body):
                return super().reply(asked.replace(path, "/v1"), body)

        with serving(Elsewhere()) as wire:
            wire.address = wire.address.removesuffix("/v1") + path
            engine = await self.build(wire, guided=True, name="openai/tiny")
            assert (await complete(engine, ask(choices=None, prefill=""))).text == "hello"
            await engine.aclose()
        assert {asked for asked, _ in wire.requests} == {f"{path}/chat/completions"}

    async def test_a_name_without_provider(self) -> None:
        with pytest.raises(EngineError, match="knows no provider for 'nobody-knows'"):
            await build_engine(ModelSpec(engine="litellm", name="nobody-knows"))

    async def test_the_usual_key_is_not_sent_to_another_endpoint(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "mine")
        with serving(Wire(key="EMPTY")) as wire:
            engine = await self.build(wire, guided=False, name="openai/tiny")
            assert (await complete(engine, ask(choices=None, prefill=""))).text == "hello"
            await engine.aclose()
