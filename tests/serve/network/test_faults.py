"""What servers say when they refuse: each fault has its kind, its words whole, and no key in them.

`refusals.jsonl` has what providers say in words, as their documentation and their users' reports quote them, and which
error that is. `refusal_forms.jsonl` has a refusal in the form of each server, and what it says: TGI's text is from
huggingface/text-generation-inference#2899, Ollama's from open-webui/open-webui#11906, FastAPI's, SGLang's and
llama.cpp's from their own sources.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import pytest
from engine_calls import CHAT, COMPLETIONS, ask, reaching, read_cases, reply
from provider_wire import serve_provider
from provider_wires import OpenAI
from wire_server import Wire, serving

from medexam.errors import CallError, RateLimitError, ServerError
from medexam.serve import TIMING, Endpoint, build_engine, probe_endpoint
from medexam.specs import EngineNeeds, ModelSpec


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


async def test_words_say_what_a_status_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 1)
    cases = read_cases("refusals")
    found = []
    with serving(Refusing()) as wire:
        async with reaching(wire) as built:
            for case in cases:
                wire.status, wire.said = case["status"], as_error(case["said"])
                with pytest.raises(CallError) as caught:
                    await reply(built, ask())
                found.append({**case, "error": type(caught.value).__name__})
                assert case["said"] in str(caught.value)
    assert found == cases


class Reporting(Wire):
    """A server whose replies of status 200, or their choices, report an error too, once there is one."""

    error: Any = None
    inside = False

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, document = super().reply(path, body)
        holders = document.get("choices", []) if self.inside else [document]
        for holder in holders if path == CHAT else ():
            holder["error"] = self.error
        return status, document


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        ({"message": "Provider returned error", "code": 502}, ServerError),
        ({"message": "Rate limit exceeded", "code": 429}, RateLimitError),
        ({"message": "no such thing", "code": None}, ServerError),
        ("upstream overloaded", ServerError),
        ({"message": "", "code": None}, None),
        ({}, None),
    ],
)
async def test_an_error_beside_a_reply_counts_and_an_empty_one_does_not(error: Any, raised: Any, monkeypatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 1)
    with serving(Reporting()) as wire:
        async with reaching(wire, engine="litellm") as engine:
            wire.error = error
            for wire.inside in (False, True):
                if raised is None:
                    assert (await reply(engine, ask())).words == "hello"
                else:
                    with pytest.raises(raised, match=error["message"] if isinstance(error, dict) else error):
                        await reply(engine, ask())


async def test_a_reply_that_a_provider_withholds_is_one_without_words() -> None:
    with serve_provider(OpenAI()) as wire:
        engine = await build_engine(ModelSpec(engine="litellm", name=wire.model_name), EngineNeeds(chat=True))
        wire.fault = "filter"
        wire.requests.clear()
        answer = await reply(engine, ask())
        await engine.aclose()
    assert (answer.words, answer.withheld, len(wire.requests)) == ("", True, 1)


async def test_a_server_behind_a_filter() -> None:
    azure = {"self_harm": {"filtered": True}}
    cases: list[tuple[int, dict[str, Any]]] = [
        (400, {"error": {"message": "blocked", "code": "content_filter"}}),
        (400, {"error": {"message": "no", "code": "SensitiveContentDetected"}}),
        (400, {"error": "Violated guardrail policy"}),
        (400, {"error": "Violated content safety policy"}),
        (400, {"error": "User input content is illegal"}),
        (400, {"error": "Content blocked by safety settings"}),
        (200, {"choices": [], "prompt_filter_results": [{"content_filter_results": azure}]}),
        (200, {"choices": None, "base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}),
    ]
    with serving(Refusing(tokenize=False)) as wire:
        async with reaching(wire) as engine:
            for status, said in cases:
                wire.status, wire.said = status, json.dumps(said)
                answer = await reply(engine, ask())
                assert (answer.words, answer.withheld) == ("", True), said
    assert len(wire.times) == len(cases)


@pytest.mark.parametrize("row", read_cases("refusal_forms"), ids=lambda row: row["server"])
async def test_what_a_refusal_says_is_kept_whole(row: dict[str, str]) -> None:
    refusing = Refusing(status=422, said=row["body"], kind=row["type"], field_alone="response_format")
    with serving(refusing) as wire:
        seen = await probe_endpoint(Endpoint(wire.address, "EMPTY"), None)
    assert seen.refusals["json_schema"].endswith(row["said"])


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
        ("in 50 minutes", 3000.0),
    ],
)
async def test_a_pause_that_a_server_asks_for_is_read(header: str, seconds: float | None, monkeypatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 1)
    header = header.replace("in 50 minutes", formatdate(time.time() + 3000, usegmt=True))
    with serving(Refusing(said="{}", headers={"Retry-After": header})) as wire:
        async with reaching(wire) as engine:
            wire.status = 429
            with pytest.raises(RateLimitError) as caught:
                await reply(engine, ask())
    assert caught.value.retry_after == (seconds if seconds is None else pytest.approx(seconds, abs=600 * (seconds > 9)))


async def test_a_pause_is_waited_for_up_to_the_longest_and_without_one_waits_double(monkeypatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 4)
    monkeypatch.setattr(TIMING, "first_wait_s", 0.1)
    monkeypatch.setattr(TIMING, "longest_hint_s", 0.4)
    cases: tuple[tuple[dict[str, str], list[float]], ...] = (
        ({"Retry-After": "0.3"}, [0.3, 0.3, 0.3]),
        ({"Retry-After": "30"}, [0.4, 0.4, 0.4]),
        ({}, [0.05, 0.1, 0.2]),
    )
    for headers, least in cases:
        with serving(Refusing(said="{}", headers=headers)) as wire:
            async with reaching(wire) as engine:
                wire.status = 429
                with pytest.raises(RateLimitError):
                    await reply(engine, ask())
        assert all(
            later - earlier >= wait for earlier, later, wait in zip(wire.times, wire.times[1:], least, strict=False)
        )
        assert len(wire.times) == 4
        assert wire.times[-1] - wire.times[0] < 30
