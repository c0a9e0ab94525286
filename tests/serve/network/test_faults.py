"""What servers say when they refuse: each fault has its kind, its words whole, and no key in them."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from engine_calls import CHAT, COMPLETIONS, ask, reaching, reply
from provider_wire import serve_provider
from provider_wires import PROVIDERS, OpenAI
from wire_server import Wire, serving

from medexam.errors import CallError, ContextLengthError, RateLimitError
from medexam.serve import TIMING, Endpoint, build_engine, probe_endpoint
from medexam.specs import EngineNeeds, ModelSpec

CASES = Path(__file__).parents[2] / "cases" / "refusals.jsonl"
"""What providers say in words, as their documentation and their users' reports quote them, and which error that is."""


@dataclass
class Refusing(Wire):
    """Answers completions with `status`, `said` and `headers`, once there is a status."""

    status: int | None = None
    said: str = ""
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    field_alone: str | None = None
    """Refuse only requests that have this field."""
    times: list[float] = field(default_factory=list)

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        if self.status is None or path not in (CHAT, COMPLETIONS) or (self.field_alone or "model") not in body:
            return None
        self.times.append(time.monotonic())
        head = {":status": str(self.status), "Content-Type": self.kind, **self.headers}
        return head, iter([self.said.encode()])


def as_error(message: str) -> str:
    return json.dumps({"error": {"message": message}})


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
async def test_words_say_what_a_status_does_not(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 1)
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    found = []
    with serving(Refusing()) as wire:
        async with reaching(wire, engine=engine) as built:
            for case in cases:
                wire.status, wire.said = case["status"], as_error(case["said"])
                with pytest.raises(CallError) as caught:
                    await reply(built, ask())
                found.append({**case, "error": type(caught.value).__name__})
                assert case["said"] in str(caught.value)
    assert found == cases


async def test_a_prompt_that_is_too_long_for_mistral() -> None:
    with serve_provider(PROVIDERS["mistral"]()) as wire:
        engine = await build_engine(ModelSpec(engine="litellm", name=wire.model_name), EngineNeeds(chat=True))
        wire.fault = "context"
        with pytest.raises(ContextLengthError, match="too large for model"):
            await reply(engine, ask())
        await engine.aclose()


async def test_a_reply_that_a_provider_withholds_is_one_without_words() -> None:
    with serve_provider(OpenAI()) as wire:
        engine = await build_engine(ModelSpec(engine="litellm", name=wire.model_name), EngineNeeds(chat=True))
        wire.fault = "filter"
        wire.requests.clear()
        answer = await reply(engine, ask())
        await engine.aclose()
    assert (answer.words, answer.withheld, len(wire.requests)) == ("", True, 1)


async def test_a_server_behind_a_filter() -> None:
    blocked = json.dumps({"error": {"message": "blocked", "code": "content_filter"}})
    with serving(Refusing(said=blocked, tokenize=False)) as wire:
        async with reaching(wire) as engine:
            wire.status = 400
            answer = await reply(engine, ask())
    assert (answer.words, answer.withheld, len(wire.times)) == ("", True, 1)


FORMS = {
    # huggingface/text-generation-inference#2899 and huggingface/huggingface_hub#2744: HTTP 422, plain text
    "TGI": (
        "text/plain; charset=utf-8",
        "Failed to deserialize the JSON body into the target type: response_format: missing field `value` at line 1",
        "response_format: missing field `value` at line 1",
    ),
    # FastAPI's own form of HTTP 422, which llama-cpp-python's server and `transformers serve` send
    "FastAPI": (
        "application/json",
        '{"detail": [{"type": "literal_error", "loc": ["body", "response_format", "type"], "msg": "Should be text"}]}',
        "body.response_format.type: Should be text",
    ),
    # FastAPI's `HTTPException`
    "FastAPI, in words": ("application/json", '{"detail": "no such model"}', "no such model"),
    # Ollama, quoted in open-webui/open-webui#11906
    "Ollama": ("application/json", '{"error": "model \\"x\\" not found, pull it first"}', "not found, pull it first"),
    # SGLang's and older vLLM's `ErrorResponse`
    "SGLang": (
        "application/json",
        '{"object": "error", "message": "Failed to compile the grammar", "type": "BadRequestError", "code": 400}',
        "Failed to compile the grammar",
    ),
    # llama.cpp's server, `format_error_response`
    "llama.cpp": (
        "application/json",
        '{"error": {"code": 400, "message": "Failed to parse grammar", "type": "invalid_request_error"}}',
        "Failed to parse grammar",
    ),
    "a proxy's page": ("text/html", "<html><body>Bad Gateway</body></html>", "HTTP 422"),
}


@pytest.mark.parametrize("server", FORMS)
async def test_what_a_refusal_says_is_kept_whole(server: str) -> None:
    kind, body, said = FORMS[server]
    refusing = Refusing(status=422, said=body, kind=kind, field_alone="structured_outputs")
    with serving(refusing) as wire:
        seen = await probe_endpoint(Endpoint(wire.address, "EMPTY"), None)
    assert seen.refusals["structured_outputs"].endswith(said)


async def test_a_refusal_that_quotes_the_key_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret-of-mine")
    monkeypatch.setattr(TIMING, "attempts", 1)
    with serving(Wire(key="s3cret-of-mine", quotes=True)) as wire:
        async with reaching(wire, api_key_env="MY_KEY") as engine:
            wire.refuse = {CHAT: 400, COMPLETIONS: 400}
            for asked in (ask(), ask(opening="So")):
                with pytest.raises(CallError, match="asked with") as caught:
                    await reply(engine, asked)
                assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *[(unusable, None) for unusable in ("", "soon", "-1", "nan", "inf")],
        ("0.5", 0.5),
        ("7", 7.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        (formatdate(time.time() + 3000, usegmt=True), 3000.0),
    ],
)
async def test_a_pause_that_a_server_asks_for_is_read(header: str, seconds: float | None, monkeypatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 1)
    with serving(Refusing(said="{}", headers={"Retry-After": header})) as wire:
        async with reaching(wire) as engine:
            wire.status = 429
            with pytest.raises(RateLimitError) as caught:
                await reply(engine, ask())
    assert caught.value.retry_after == (seconds if seconds is None else pytest.approx(seconds, abs=600 * (seconds > 9)))


async def test_a_pause_is_waited_for_and_without_one_waits_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 4)
    monkeypatch.setattr(TIMING, "first_wait_s", 0.1)
    for headers, least in (({"Retry-After": "0.3"}, [0.3, 0.3, 0.3]), ({}, [0.05, 0.1, 0.2])):
        with serving(Refusing(said="{}", headers=headers)) as wire:
            async with reaching(wire) as engine:
                wire.status = 429
                with pytest.raises(RateLimitError):
                    await reply(engine, ask())
        assert all(
            later - earlier >= wait for earlier, later, wait in zip(wire.times, wire.times[1:], least, strict=False)
        )
        assert len(wire.times) == 4


def test_an_outage_of_twenty_seconds_costs_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    most = sum(min(TIMING.first_wait_s * 2**n, TIMING.longest_wait_s) for n in range(TIMING.attempts - 1))
    assert most / 2 > 20
    assert most < TIMING.patience_s
