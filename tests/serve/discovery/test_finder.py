"""Servers that a registry tells: found, followed while they come and go, and waited for."""

import asyncio
import os
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from wire_server import HeldWire, Wire, serving

from asked import complete
from medexam.errors import EndpointUnreachableError, EngineError
from medexam.serve import TIMING, RegisteredServer, Registry, build_engine, write_key
from medexam.serve.discovery import finder as finding
from medexam.serve.discovery.finder import ServerFinder
from medexam.specs import EngineNeeds, ModelSpec
from waiting import soon


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


async def seen(engine, count: int) -> None:
    """Wait until as many servers take part."""
    pool = engine.pool
    await soon(lambda: len(pool.active) == count, f"{count} servers")


def completions(wire: Wire) -> int:
    return len(wire.bodies("/v1/completions"))


async def test_servers_come_and_go_while_they_are_asked(registry, ask) -> None:
    with serving(HeldWire()) as first, serving(Wire()) as second:
        registry.add(entry(first))
        engine = await build_engine(spec(registry), EngineNeeds(guided=True))
        try:
            registry.add(entry(second))
            await seen(engine, 2)
            before = completions(first), completions(second)
            first.free.clear()
            held = asyncio.create_task(complete(engine, ask("q", choice=["1", "2"])))
            await soon(lambda: completions(first) > before[0])
            await complete(engine, ask("the least busy is asked", choice=["1", "2"]))
            assert completions(second) > before[1]
            assert not held.done()
            first.free.set()
            await held
            registry.remove(first.address)
            await seen(engine, 1)
            before = completions(first)
            await asyncio.gather(*(complete(engine, ask(f"p{n}", choice=["1", "2"])) for n in range(20)))
            assert completions(first) == before
            assert set(engine.info().endpoints) == {first.address, second.address}
        finally:
            await engine.aclose()


async def test_a_call_waits_for_the_next_server_when_the_last_has_left(registry, ask, caplog) -> None:
    with serving(Wire()) as first, serving(Wire()) as second:
        registry.add(entry(first))
        engine = await build_engine(spec(registry, wait_s=600), EngineNeeds(guided=True))
        try:
            registry.remove(first.address)
            await seen(engine, 0)
            asked = asyncio.create_task(complete(engine, ask("q", choice=["1", "2"])))
            await soon(lambda: "the last server has left the registry; waiting 600 s for another" in caplog.text)
            assert not asked.done()
            registry.add(entry(second))
            assert (await asked).text in ("1", "2")
            assert caplog.text.count("the last server has left") == 1
        finally:
            await engine.aclose()


async def test_a_server_of_another_kind_stays_out(registry, ask, caplog) -> None:
    with serving(Wire()) as first, serving(Wire(structured=False)) as lesser, serving(Wire(models=("big",))) as other:
        registry.add(entry(first))
        engine = await build_engine(spec(registry), EngineNeeds(guided=True))
        try:
            registry.add(entry(lesser), entry(other))
            await soon(lambda: "stays out" in caplog.text)
            assert "structured_outputs" in caplog.text
            assert len(engine.pool.active) == 1
            assert not other.requests
        finally:
            await engine.aclose()


async def test_a_torn_registry_leaves_the_servers_as_they_were(registry, ask, caplog) -> None:
    with serving(Wire()) as first:
        registry.add(entry(first))
        engine = await build_engine(spec(registry), EngineNeeds(guided=True))
        try:
            registry.path.write_text('{"form": "medexam ser')
            await soon(lambda: "known servers are kept" in caplog.text)
            assert caplog.text.count("known servers are kept") == 1
            assert (await complete(engine, ask("q", choice=["1", "2"]))).text in ("1", "2")
        finally:
            await engine.aclose()


async def test_a_run_waits_for_the_first_server(registry, caplog) -> None:
    with serving(Wire()) as wire:
        building = asyncio.create_task(build_engine(spec(registry, wait_s=600)))
        await soon(lambda: "waiting 600 s for one" in caplog.text)
        assert not building.done()
        registry.add(entry(wire))
        await (await building).aclose()


async def test_a_run_waits_for_hours_while_a_job_is_pending(registry, monkeypatch, caplog) -> None:
    waited_s, registered_s = 0.0, 5 * 3600.0
    sleep = asyncio.sleep

    with serving(Wire()) as wire:

        async def pass_time(seconds: float) -> None:
            nonlocal waited_s
            waited_s += seconds
            if waited_s >= registered_s:
                registry.add(entry(wire, job="17"))
            await sleep(0)

        monkeypatch.setattr(TIMING, "poll_s", 60.0)
        monkeypatch.setattr(finding, "time", SimpleNamespace(monotonic=lambda: waited_s))
        monkeypatch.setattr(finding.asyncio, "sleep", pass_time)
        (found,) = await ServerFinder(registry, spec(registry)).wait_for_first(86400)
        assert (found.base, waited_s) == (wire.address, registered_s)
        assert len(caplog.records) == 1
        assert "waiting 86400 s for one" in caplog.text

        waited_s, registered_s = 0.0, float("inf")
        registry.remove(wire.address)
        with pytest.raises(EndpointUnreachableError, match="no server is registered"):
            await ServerFinder(registry, spec(registry)).wait_for_first(86400)
        assert waited_s == 86400


async def test_a_run_waits_as_long_as_a_server_loads(registry, caplog) -> None:
    with serving(Wire()) as wire:
        registry.add(entry(wire, ready=False))
        building = asyncio.create_task(build_engine(spec(registry, wait_s=0)))
        await soon(lambda: "still loads" in caplog.text)
        assert not building.done()
        registry.add(entry(wire))
        await (await building).aclose()
    assert [line.getMessage() for line in caplog.records if "loads" in line.getMessage()] == [
        f"medexam: warning: {wire.address} still loads; waiting for it"
    ]


async def test_a_server_that_never_loaded_is_waited_for_no_longer(registry, caplog) -> None:
    with serving(Wire()) as wire:
        registry.add(entry(wire, ready=False))
        building = asyncio.create_task(build_engine(spec(registry, wait_s=0)))
        await soon(lambda: "still loads" in caplog.text)
        registry.remove(wire.address)
        with pytest.raises(EndpointUnreachableError, match="no server is registered"):
            await building


async def test_nobody_came(registry) -> None:
    with pytest.raises(EndpointUnreachableError, match=r"no server is registered in .*--registry"):
        await build_engine(spec(registry, wait_s=0.2))


async def test_a_server_whose_clock_is_minutes_apart_is_asked(registry, ask, caplog) -> None:
    with serving(Wire()) as wire:
        registry.add(entry(wire, host="n7", seen_at=time.time() - 4000))
        building = asyncio.create_task(build_engine(spec(registry, wait_s=0)))
        await soon(lambda: "last heartbeat of n7 is not within the last 30 s" in caplog.text)
        assert not building.done()
        registry.add(entry(wire, host="n7", seen_at=time.time() - 3995))
        engine = await building
        try:
            assert (await complete(engine, ask("q"))).text
        finally:
            await engine.aclose()


async def test_a_server_that_ended_long_ago_is_not_asked(registry, monkeypatch, caplog) -> None:
    monkeypatch.setattr(TIMING, "stale_s", 0.2)
    with serving(Wire()) as wire:
        registry.add(entry(wire, host="n7", seen_at=time.time() + 4000))
        with pytest.raises(EndpointUnreachableError, match="no server is registered"):
            await build_engine(spec(registry, wait_s=0))
        assert "the last heartbeat of n7" in caplog.text
        assert not wire.requests


async def test_without_endpoints_the_servers_of_this_machine_are_asked(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    alone = ModelSpec(engine="vllm")
    with pytest.raises(EndpointUnreachableError, match="medexam serve smollm2-cpu"):
        await build_engine(alone)
    with serving(Wire(key="open sesame")) as wire:
        write_key(tmp_path / "the.key", "open-sesame")
        wire.key = "open-sesame"
        Registry(tmp_path / "servers.json").add(entry(wire, key_file=tmp_path / "the.key"))
        engine = await build_engine(alone)
        assert engine.info().model == "tiny"
        await engine.aclose()


async def test_several_models_are_told_apart(registry) -> None:
    with serving(Wire()) as tiny, serving(Wire(models=("big",))) as big:
        registry.add(entry(tiny), entry(big))
        with pytest.raises(EngineError, match=r"2 models \(tiny, big\)"):
            await build_engine(spec(registry))
        engine = await build_engine(spec(registry, name="big"))
        assert engine.info().model == "big"
        await engine.aclose()


def test_a_worker_takes_the_servers_of_its_own_machine(registry) -> None:
    registry.add(
        RegisteredServer("http://a:1/v1", "tiny", "a", 1),
        RegisteredServer("http://b:1/v1", "tiny", "b", 1, key_file=None),
    )
    addresses = {
        host: [found.base for found in ServerFinder(registry, spec(registry), host).find(None)]
        for host in ("b", "c", None)
    }
    assert addresses == {
        "b": ["http://b:1/v1"],
        "c": ["http://a:1/v1", "http://b:1/v1"],
        None: ["http://a:1/v1", "http://b:1/v1"],
    }
