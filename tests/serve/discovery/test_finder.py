"""Servers that a registry tells: found, found again after a fault, and waited for."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from engine_calls import COMPLETIONS, GUIDED, ask, replies, reply
from wire_server import Wire, serving

from medexam.errors import EndpointUnreachableError
from medexam.serve import TIMING, RegisteredServer, Registry, build_engine
from medexam.specs import EngineNeeds, ModelSpec
from waiting import soon

ASKED = ask(opening="{Answer: ", choices=["1", "2"])


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setattr(TIMING, "poll_s", 0.05)
    monkeypatch.setattr(TIMING, "first_wait_s", 0.05)
    return Registry(tmp_path / "shared" / "servers")


def entry(wire: Wire, **changes) -> RegisteredServer:
    told = {"model": wire.models[0], "host": socket.gethostname(), "pid": os.getpid(), **changes}
    return RegisteredServer(address=wire.address, **told)


def spec(registry: Registry, **changes) -> ModelSpec:
    return ModelSpec(engine="vllm", endpoints=(f"registry:{registry.path}",), **changes)


async def build(registry: Registry, needs: EngineNeeds = GUIDED, **changes) -> Any:
    return await build_engine(spec(registry, **changes), needs)


def completions(wire: Wire) -> int:
    return len(wire.bodies(COMPLETIONS))


async def test_a_registry_is_read_again_after_a_fault_alone(registry) -> None:
    with serving(Wire()) as first, serving(Wire()) as second:
        registry.add(entry(first))
        engine = await build(registry)
        registry.add(entry(second))
        await replies(engine, [ASKED] * 20)
        assert engine.info().endpoints == (first.address,)
        registry.remove(entry(first))
        first.drop = True
        await replies(engine, [ASKED] * 20)
        assert engine.info().endpoints == (first.address, second.address)
        first.drop = False
        before = completions(first)
        await replies(engine, [ASKED] * 20)
        assert completions(first) == before, "it has left"
        await engine.aclose()


async def test_a_call_waits_for_the_next_server_when_the_last_has_left(registry, caplog) -> None:
    with serving(Wire()) as first, serving(Wire()) as second:
        registry.add(entry(first))
        engine = await build(registry, wait_s=600)
        registry.remove(entry(first))
        first.drop = True
        asked = asyncio.create_task(reply(engine, ASKED))
        await soon(lambda: "the last server has left the registry; waiting 600 s for another" in caplog.text)
        await asyncio.sleep(0.1)
        assert not asked.done()
        registry.add(entry(second))
        assert (await asked).text in ("1", "2")
        assert caplog.text.count("the last server has left") == 1
        await engine.aclose()


async def test_a_server_of_another_kind_stays_out(registry, caplog) -> None:
    lesser, other, good = Wire(allowed=False), Wire(models=("big",)), Wire()
    with serving(Wire()) as first, serving(lesser), serving(other), serving(good):
        registry.add(entry(first))
        engine = await build(registry)
        registry.add(entry(lesser), entry(other), entry(good))
        first.drop = True
        await replies(engine, [ASKED] * 3)
        assert "stays out" in caplog.text
        assert "allowed_token_ids" in caplog.text
        assert set(engine.info().endpoints) == {first.address, good.address}
        assert not other.requests
        await engine.aclose()


async def test_a_torn_registry_leaves_the_servers_as_they_were(registry, caplog) -> None:
    with serving(Wire()) as first, serving(Wire()) as second:
        registry.add(entry(first), entry(second))
        engine = await build(registry)
        (registry.path / "torn.json").write_text('{"form": "medexam ser')
        {wire.address: wire for wire in (first, second)}[engine.info().endpoints[0]].drop = True
        assert (await reply(engine, ASKED)).text in ("1", "2")
        assert "known servers are kept" in caplog.text
        await engine.aclose()


async def test_a_run_begins_with_the_servers_that_still_load(registry, caplog) -> None:
    with serving(Wire()) as first, serving(Wire()) as second:
        registry.add(entry(first), entry(second, ready=False))
        building = asyncio.create_task(build(registry))
        await soon(lambda: "still loads; waiting for it" in caplog.text)
        assert not building.done()
        registry.add(entry(second))
        engine = await building
        assert {*engine.info().endpoints} == {first.address, second.address}
        await engine.aclose()


@pytest.mark.parametrize(
    ("loading", "said"),
    [(False, "waiting 600 s for one"), (True, "still loads; waiting for it")],
    ids=["none is there", "it still loads"],
)
async def test_a_run_waits_for_the_first_server(registry, caplog, loading: bool, said: str) -> None:
    with serving(Wire()) as wire:
        if loading:
            registry.add(entry(wire, ready=False))
        building = asyncio.create_task(build(registry, wait_s=600))
        await soon(lambda: said in caplog.text)
        assert not building.done()
        registry.add(entry(wire))
        await (await building).aclose()
    assert caplog.text.count(said) == 1


async def test_a_machine_that_lost_its_power_is_passed_over(registry) -> None:
    with serving(Wire()) as gone:
        registry.add(entry(gone, host="n7", pid=1))
    with pytest.raises(EndpointUnreachableError, match=r"no server answers that is registered in "):
        await build(registry, wait_s=0)
    with serving(Wire()) as here:
        registry.add(entry(here, host="n8", pid=1))
        engine = await build(registry, wait_s=0)
        assert engine.info().endpoints == (here.address,)
        await engine.aclose()


async def test_without_endpoints_the_servers_of_this_machine_are_asked_with_their_own_key(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    alone = ModelSpec(engine="vllm")
    with pytest.raises(EndpointUnreachableError, match="medexam serve smollm2-cpu"):
        await build_engine(alone)
    with serving(Wire(key="open-sesame")) as wire:
        Registry(tmp_path / "servers").add(entry(wire, key="open-sesame"))
        engine = await build_engine(alone)
        assert engine.info().model == "tiny"
        await engine.aclose()
