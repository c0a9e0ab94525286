"""Servers that die, fall silent and come back, under a pool whose calls are answered in this process."""

import asyncio
import logging

import pytest

from medexam.errors import EndpointSilentError, EndpointUnreachableError, TransportError
from medexam.serve import TIMING, Endpoint
from medexam.serve.discovery import finder
from medexam.serve.pool import server_pool, silence
from medexam.serve.pool.server_pool import Server, ServerPool
from waiting import soon

LOST, KEPT = (Endpoint(f"http://{name}:8000/v1", "EMPTY") for name in ("lost", "kept"))
TIMEOUT_S = 60.0
"""Nothing here takes a second on an idle machine; what never ends fails after this."""


@pytest.fixture
async def pool():
    opened = ServerPool((LOST, KEPT), 600.0)
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "LOOK_S", 0.02)
    monkeypatch.setattr(TIMING, "poll_s", 0.02)


def test_calls_that_are_lost_together_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(server_pool.time, "monotonic", lambda: now)
    server = Server(LOST, None)
    for _ in range(40):
        server.record_failure(TransportError("connection reset"))
    assert (server.failures, server.retry_at) == (1, now + TIMING.cooldown_s)
    now = server.retry_at
    assert server.ready(now)
    server.record_failure(TransportError("connection refused"))
    assert (server.failures, server.retry_at) == (2, now + 2 * TIMING.cooldown_s)


async def test_what_a_silent_server_was_asked_is_asked_elsewhere(pool: ServerPool) -> None:
    asked: list[str] = []

    async def send(server: Server) -> str:
        asked.append(server.endpoint.base)
        if server.endpoint is LOST:
            await asyncio.Event().wait()
        return server.endpoint.base

    async def replies(endpoint: Endpoint) -> bool:
        return endpoint is not LOST

    pool.run_in_background(silence.watch_silence(pool, replies))
    async with asyncio.timeout(TIMEOUT_S):
        assert await pool.call(send, weight=3) == KEPT.base
    assert asked == [LOST.base, KEPT.base]
    lost, kept = pool.active
    assert (lost.outstanding, lost.failures, lost.unverified, kept.failures) == (0, 1, True, 0)


async def test_a_silent_server_that_left_the_registry_is_given_up_too(pool: ServerPool) -> None:
    async def send(server: Server) -> str:
        if server.endpoint is LOST:
            await asyncio.Event().wait()
        return server.endpoint.base

    async def replies(endpoint: Endpoint) -> bool:
        return endpoint is not LOST

    asked = asyncio.create_task(pool.call(send, weight=1))
    await soon(lambda: pool.active[0].outstanding == 1)
    await pool.remove(LOST.base)
    assert [server.endpoint for server in pool.leaving] == [LOST]
    pool.run_in_background(silence.watch_silence(pool, replies))
    async with asyncio.timeout(TIMEOUT_S):
        assert await asked == KEPT.base
    assert not pool.leaving


@pytest.mark.parametrize("alone", [False, True], ids=["it replies to looks", "there is no other"])
async def test_a_server_that_takes_long_is_waited_for(pool: ServerPool, alone: bool) -> None:
    looks, answered = 0, asyncio.Event()
    if alone:
        await pool.remove(KEPT.base)

    async def send(server: Server) -> str:
        await answered.wait()
        return server.endpoint.base

    async def replies(endpoint: Endpoint) -> bool:
        nonlocal looks
        looks += 1
        return not alone

    pool.run_in_background(silence.watch_silence(pool, replies))
    asked = asyncio.create_task(pool.call(send, weight=1))
    await soon(lambda: looks > 6)
    answered.set()
    assert await asked == LOST.base


async def test_any_reply_is_a_reply(unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "LOOK_S", 5.0)

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    endpoint = Endpoint(f"http://127.0.0.1:{unused_tcp_port}/v1", "EMPTY")
    assert not await silence.replies(endpoint)
    async with await asyncio.start_server(refuse, "127.0.0.1", unused_tcp_port):
        assert await silence.replies(endpoint)


async def test_servers_that_join_together_are_probed_beside_each_other(
    pool: ServerPool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    new = [Endpoint(f"http://new-{number}:8000/v1", "EMPTY") for number in range(4)]
    slow, silent, other, good = new
    listed, held, looks = [LOST, KEPT, *new], asyncio.Event(), 0

    async def probe(endpoint: Endpoint) -> None:
        nonlocal looks
        if endpoint is slow:
            await held.wait()
        if endpoint is silent:
            looks += 1
            raise EndpointSilentError("not yet")
        if endpoint is other:
            raise EndpointUnreachableError("another model")

    pool.run_in_background(finder.follow(lambda: listed, pool, probe))
    await soon(lambda: good.base in pool.addresses and looks > 2)
    listed.remove(LOST)
    await soon(lambda: LOST.base not in {one.endpoint.base for one in pool.active})
    assert slow.base not in pool.addresses
    held.set()
    await soon(lambda: slow.base in pool.addresses)
    assert other.base not in pool.addresses
    assert caplog.text.count("stays out of this run: another model") == 1
