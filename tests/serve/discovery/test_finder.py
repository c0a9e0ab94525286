"""Servers that a registry tells: found, followed while they come and go, and waited for."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from engine_calls import COMPLETIONS, GUIDED, ask, replies, reply
from wire_server import HeldWire, Wire, serving

from medexam.errors import EndpointUnreachableError
from medexam.serve import TIMING, RegisteredServer, Registry, build_engine, write_key
from medexam.specs import EngineNeeds, ModelSpec
from waiting import soon

ASKED = ask(opening="{Answer: ", choices=["1", "2"])


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setattr(TIMING, "poll_s", 0.05)
    monkeypatch.setattr(TIMING, "stale_s", 3600.0)  # nobody sends heartbeats here
    return Registry(tmp_path / "shared" / "servers.json")


def entry(wire: Wire, **changes) -> RegisteredServer:
    told = {"model": wire.models[0], "host": socket.gethostname(), "pid": os.getpid(), **changes}
    return RegisteredServer(address=wire.address, **told)


def spec(registry: Registry, **changes) -> ModelSpec:
    return ModelSpec(engine="vllm", endpoints=(f"registry:{registry.path}",), **changes)


async def build(registry: Registry, needs: EngineNeeds = GUIDED, prefer_host: str | None = None, **changes) -> Any:
    return await build_engine(spec(registry, **changes), needs, prefer_host=prefer_host)


def completions(wire: Wire) -> int:
    return len(wire.bodies(COMPLETIONS))


async def test_servers_come_and_go_while_they_are_asked(registry) -> None:
    with serving(HeldWire()) as first, serving(Wire()) as second:
        registry.add(entry(first))
        engine = await build(registry)
        alone = engine.concurrency
        registry.add(entry(second))
        await soon(lambda: engine.concurrency == 2 * alone, "the second server")
        before = completions(first), completions(second)
        first.free.clear()
        held = asyncio.create_task(reply(engine, ASKED))
        await soon(lambda: completions(first) > before[0])
        await reply(engine, ask("the least busy is asked", opening="{", choices=["1", "2"]))
        assert completions(second) > before[1]
        registry.remove(first.address)
        await soon(lambda: engine.concurrency == alone, "the first one's leaving")
        assert not held.done(), "what it was asked, it may still answer"
        first.free.set()
        assert (await held).reply in ("1", "2")
        before = completions(first)
        await replies(engine, [ASKED] * 20)
        assert completions(first) == before
        assert set(engine.info().endpoints) == {first.address, second.address}
        await engine.aclose()


async def test_a_call_waits_for_the_next_server_when_the_last_has_left(registry, caplog) -> None:
    with serving(Wire()) as first, serving(Wire()) as second:
        registry.add(entry(first))
        engine = await build(registry, wait_s=600)
        registry.remove(first.address)
        await soon(lambda: "the last server has left the registry; waiting 600 s for another" in caplog.text)
        asked = asyncio.create_task(reply(engine, ASKED))
        await asyncio.sleep(0.1)
        assert not asked.done()
        registry.add(entry(second))
        assert (await asked).reply in ("1", "2")
        assert caplog.text.count("the last server has left") == 1
        await engine.aclose()


async def test_a_server_of_another_kind_stays_out_and_keeps_none_waiting(registry, caplog) -> None:
    lesser, other, good = Wire(structured=False), Wire(models=("big",)), Wire()
    with serving(Wire()) as first, serving(lesser), serving(other), serving(good):
        registry.add(entry(first))
        engine = await build(registry)
        alone = engine.concurrency
        registry.add(entry(lesser), entry(other), entry(good))
        await soon(lambda: engine.concurrency == 2 * alone and "stays out" in caplog.text)
        assert "structured_outputs" in caplog.text
        assert not other.requests
        await engine.aclose()


async def test_a_torn_registry_leaves_the_servers_as_they_were(registry, caplog) -> None:
    with serving(Wire()) as first:
        registry.add(entry(first))
        engine = await build(registry)
        registry.path.write_text('{"form": "medexam ser')
        await soon(lambda: "known servers are kept" in caplog.text)
        assert (await reply(engine, ASKED)).reply in ("1", "2")
        assert caplog.text.count("known servers are kept") == 1
        await engine.aclose()


@pytest.mark.parametrize(
    ("loading", "wait_s", "said"),
    [(False, 600, "waiting 600 s for one"), (True, 0, "still loads; waiting for it")],
    ids=["none is there", "it still loads"],
)
async def test_a_run_waits_for_the_first_server(registry, caplog, loading: bool, wait_s: float, said: str) -> None:
    with serving(Wire()) as wire:
        if loading:
            registry.add(entry(wire, ready=False))
        building = asyncio.create_task(build(registry, wait_s=wait_s))
        await soon(lambda: said in caplog.text)
        assert not building.done()
        registry.add(entry(wire))
        await (await building).aclose()
    assert caplog.text.count(said) == 1


async def test_without_endpoints_the_servers_of_this_machine_are_asked_with_their_own_key(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    alone = ModelSpec(engine="vllm")
    with pytest.raises(EndpointUnreachableError, match="medexam serve smollm2-cpu"):
        await build_engine(alone)
    with serving(Wire(key="open-sesame")) as wire:
        write_key(tmp_path / "the.key", "open-sesame")
        Registry(tmp_path / "servers.json").add(entry(wire, key_file=tmp_path / "the.key"))
        engine = await build_engine(alone)
        assert engine.info().model == "tiny"
        await engine.aclose()


@pytest.mark.parametrize(("host", "found"), [("b", ("b",)), ("c", ("a", "b")), (None, ("a", "b"))])
async def test_a_worker_takes_the_servers_of_its_own_machine(
    registry, host: str | None, found: tuple[str, ...]
) -> None:
    with serving(Wire()) as of_a, serving(Wire()) as of_b:
        wires = {"a": of_a, "b": of_b}
        registry.add(*(entry(wire, host=name) for name, wire in wires.items()))
        engine = await build(registry, prefer_host=host)
        assert engine.info().endpoints == tuple(wires[name].address for name in found)
        await engine.aclose()
