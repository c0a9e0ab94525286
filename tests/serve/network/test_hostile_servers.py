"""Replies without end, without sense, and with numbers and texts that fit nowhere: each is a fault in one line."""

import asyncio
import time
from dataclasses import replace

import pytest
from dspy.lm15 import Config, Message, Request, Response
from hostile_server import HostileWire
from wire_server import serving

from asked import complete
from medexam.dspy_requests import read_generation
from medexam.errors import CallError, CallTimeoutError, EndpointSilentError, ServerError, TransportError
from medexam.model_calls import Ending
from medexam.predictions import Prediction, Status
from medexam.serve import NO_KEY, TIMING, Endpoint, build_engine, probe_endpoint
from medexam.serve.discovery.probe import check_same
from medexam.serve.engines.litellm_calls import LONGEST_MESSAGE
from medexam.serve.network import connections, retry
from medexam.serve.network.connections import open_client
from medexam.serve.network.http_calls import reply_object
from medexam.specs import ModelSpec
from medexam.text import visible, writable
from waiting import BACKSTOP_S

HELLO = Request(model="tiny", messages=(Message.user("Hello"),), config=Config(temperature=0.0, max_tokens=4))


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 2)
    monkeypatch.setattr(connections, "MOST_BYTES", 4_000_000)


async def ask(how: str, timeout_s: float = BACKSTOP_S, request: Request = HELLO) -> Response:
    with serving(HostileWire(megabytes=50)) as wire:
        engine = await build_engine(ModelSpec(engine="vllm", endpoints=(wire.address,), timeout_s=timeout_s))
        try:
            wire.how = how
            return await complete(engine, request)
        finally:
            await engine.aclose()


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ("huge", TransportError),
        ("bomb", TransportError),
        ("drip", CallTimeoutError),
        ("deep", CallError),
        ("page", CallError),
        ("list", CallError),
        ("empty object", CallError),
        ("null", CallError),
        ("large id", CallError),
        ("infinite", ServerError),
    ],
)
async def test_what_is_no_reply_is_a_fault_in_one_line(how: str, fault: type[CallError]) -> None:
    with pytest.raises(fault) as caught:
        await ask(how, timeout_s=2.0 if fault is CallTimeoutError else BACKSTOP_S)
    said = str(caught.value)
    assert "Traceback" not in said
    assert len(said) <= LONGEST_MESSAGE + 200


@pytest.mark.parametrize("how", ["abort", "error", "unknown end"])
@pytest.mark.parametrize("continued", [False, True], ids=["chat", "completions"])
async def test_a_reply_that_was_broken_off_is_a_fault(how: str, *, continued: bool) -> None:
    opened = replace(HELLO, messages=(*HELLO.messages, Message.assistant("{Answer: ")))
    with pytest.raises(ServerError, match="was interrupted"):
        await ask(how, request=opened if continued else HELLO)


@pytest.mark.parametrize(
    ("how", "reply", "ending", "written"),
    [
        ("null content", "", Ending.COMPLETE, "stop"),
        ("refused", "I cannot help.", Ending.REFUSED, "stop"),
        ("filtered", "", Ending.FILTERED, "content_filter"),
        ("cut", "hello", Ending.CUT, "max_tokens"),
    ],
)
async def test_a_reply_ends_as_the_server_says(how: str, reply: str, ending: Ending, written: str) -> None:
    generation = read_generation(await ask(how))
    assert (generation.reply, generation.ending, generation.finish_reason) == (reply, ending, written)


@pytest.mark.parametrize("how", ["ids", "texts"])
async def test_texts_and_token_ids_of_another_type_are_a_fault_in_one_line(how: str) -> None:
    opened = replace(HELLO, messages=(*HELLO.messages, Message.assistant("{Answer: ")))
    with pytest.raises(ServerError, match=r"cannot be read|not be as expected"):
        await ask(how, request=opened)


@pytest.mark.parametrize("how", ["large usage", "negative usage"])
async def test_a_reply_is_kept_without_numbers_that_cannot_be(how: str) -> None:
    generation = read_generation(await ask(how))
    assert generation.reply == "hello"
    assert (generation.prompt_tokens, generation.completion_tokens) == (None, None)


async def test_half_a_surrogate_pair_is_kept_as_its_escape() -> None:
    generation = read_generation(await ask("surrogate"))
    assert generation.reply == "{Answer: 1} \\ud800 \x1b[31mred"
    assert read_generation(await ask("name")).model.startswith("\x1b[31m\\ud800")


@pytest.mark.parametrize("how", ["huge", "bomb", "drip", "deep", "page", "null"])
async def test_a_plain_call_ends(how: str) -> None:
    begun = time.monotonic()
    with serving(HostileWire(how=how, paths=("/x",), megabytes=50)) as wire:
        root = wire.address.removesuffix("/v1")
        async with open_client(Endpoint(wire.address, NO_KEY), 1.0) as client:
            with pytest.raises(CallError) as caught:
                await reply_object(client.get(f"{root}/x"), "/x")
    assert "\n" not in str(caught.value)
    assert time.monotonic() - begun < BACKSTOP_S


def test_an_outage_of_twenty_seconds_costs_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("asyncio.sleep", wait)

    async def attempt() -> None:
        raise TransportError("away")

    for _ in range(20):
        waited.clear()
        with pytest.raises(TransportError):
            asyncio.run(retry.ask_again(attempt, timeout_s=600.0))
        assert 20.0 < sum(waited) < TIMING.patience_s


def test_texts_that_can_be_written_stay_as_they_are() -> None:
    assert writable({"a": ["Ä\x1b", 1, None]}) == {"a": ["Ä\x1b", 1, None]}
    assert writable({"\ud800": ("\udfff",)}) == {"\\ud800": ("\\udfff",)}
    assert visible("a\tb\nc\x1b[31m\u202e\ud800") == "a\tb\nc\\x1b[31m\\u202e\\ud800"
    kept = Prediction(
        question="q", program="p", spec_digest="d", status=Status.ANSWERED, answer=1, reply="\ud800", rationale="Ä"
    )
    assert (kept.reply, kept.rationale) == ("\\ud800", "Ä")


async def test_many_large_replies_at_once_are_received_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES_TOGETHER", 1_000_000)
    held = 0

    class Watching(connections._Receiving):
        def add(self, reply: int, received: int) -> None:
            nonlocal held
            super().add(reply, received)
            held = max(held, self._total)

    receiving = Watching()
    monkeypatch.setattr(connections._BoundedStream, "_receiving", receiving)
    with serving(HostileWire(how="huge", paths=("/v1/large",), megabytes=3)) as wire:
        async with open_client(Endpoint(base=wire.address, key=NO_KEY), 20.0) as client:
            replies = await asyncio.gather(*(client.post(f"{wire.address}/large", json={}) for _ in range(16)))
    assert [len(reply.content) for reply in replies] == [3_000_000] * 16
    # The oldest reply may be whole beside what is held together, and each other one has a part more.
    assert held < 1_000_000 + 3_000_000 + 16 * 100_000
    assert receiving._total == 0


@pytest.mark.parametrize("how", ["page", "list", "choices", "places"])
async def test_a_garbled_reply_leaves_open_whether_the_model_is_the_same(how: str) -> None:
    with serving(HostileWire()) as wire:
        endpoint = Endpoint(wire.address, NO_KEY)
        first = await probe_endpoint(endpoint, None)
        wire.how = how
        with pytest.raises(EndpointSilentError):
            await check_same(endpoint, first)
        wire.how = ""
        await check_same(endpoint, first)
