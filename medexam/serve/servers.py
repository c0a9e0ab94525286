"""The servers of one model: which is asked next, which one rests after a fault, and which one comes back.

It knows addresses and faults; what is said to a server is its callers' business.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from medexam.errors import EndpointSilentError, EngineError
from medexam.serve.concurrency import MOST, Concurrency
from medexam.serve.endpoints import Endpoint
from medexam.serve.network import network
from medexam.serve.retrying import CURABLE, ask_again, is_refusal

T = TypeVar("T")

REST_S = 5.0
"""Seconds that a server is left alone after it failed, while others answer; and between looks for an absent one."""
_LONGEST_REST = 12
"""No rest is longer than so many of the shortest."""
_KEEP_ALIVE_S = 4.0
"""Idle connections are dropped before vLLM drops them (after 5 s), or a request could meet a closing one."""

_log = logging.getLogger(__name__)


@dataclass
class Server:
    """One server as this process sees it."""

    endpoint: Endpoint
    client: Any
    """An `AsyncOpenAI`, which litellm uses instead of one of its own."""
    outstanding: int = 0
    """Prompts that it was sent and did not answer yet."""
    faults: int = 0
    """Calls in a row that met a fault."""
    rests_until: float = 0.0

    def ready(self, now: float) -> bool:
        """Whether it may be asked; one that failed is asked one thing at a time after its rest, until it answers."""
        return not self.faults or (now >= self.rests_until and not self.outstanding)

    def fail(self, fault: Exception) -> None:
        """A call met a fault: rest as long as the server asks, or the longer the more faults in a row."""
        self.faults += 1
        rest_s = getattr(fault, "retry_after", None) or REST_S * min(self.faults, _LONGEST_REST)
        self.rests_until = time.monotonic() + rest_s


@dataclass
class Servers:
    """The servers that take part. They belong to the network loop."""

    endpoints: Iterable[Endpoint]
    timeout_s: float
    """Seconds one request may take, waiting in the server's queue included."""
    live: list[Server] = field(default_factory=list)
    load: Concurrency = field(init=False)
    """How many requests they are given at once; whoever gives them says when one begins and ends."""
    _looks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.load = Concurrency(self.timeout_s, servers=0)
        for endpoint in self.endpoints:
            self.add(endpoint)

    def add(self, endpoint: Endpoint) -> None:
        """Let a server take part."""
        self.live.append(Server(endpoint, _open_client(endpoint, self.timeout_s)))
        self.load.add_server()

    def least_busy(self) -> Server:
        """The server with the fewest prompts outstanding, of those that are ready; else the one that failed least."""
        now = time.monotonic()
        ready = [server for server in self.live if server.ready(now)]
        if ready:
            return min(ready, key=lambda one: one.outstanding)
        return min(self.live, key=lambda one: (one.faults, one.rests_until))

    async def call(self, send: Callable[[Server], Awaitable[T]], *, weight: int, first: Server | None = None) -> T:
        """What `send` brings back from a server, asked again elsewhere or later while a fault is curable.

        `weight` is the number of prompts sent; `first` is the server to ask first, None for the least busy one.
        """
        preferred = first

        async def attempt() -> T:
            nonlocal preferred
            server, preferred = preferred or self.least_busy(), None
            server.outstanding += weight
            try:
                reply = await send(server)
            except CURABLE as fault:
                server.fail(fault)
                if is_refusal(fault):
                    self.load.refuse()
                raise
            finally:
                server.outstanding -= weight
            server.faults = 0
            return reply

        return await ask_again(attempt, timeout_s=self.timeout_s, elsewhere=self._any_ready)

    def look_for(self, endpoint: Endpoint, probe: Callable[[], Awaitable[None]]) -> None:
        """Let a server take part as soon as `probe` finds it there.

        Where `probe` raises another `EngineError` than that the server is silent, the server stays out.
        """
        task = asyncio.get_running_loop().create_task(self._look(endpoint, probe))
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)

    async def close(self) -> None:
        """Close the connections."""
        for task in self._looks:
            task.cancel()
        await asyncio.gather(*self._looks, return_exceptions=True)
        for server in self.live:
            await server.client.close()

    def _any_ready(self) -> bool:
        now = time.monotonic()
        return any(server.ready(now) for server in self.live)

    async def _look(self, endpoint: Endpoint, probe: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(REST_S)
            try:
                await probe()
            except EndpointSilentError:
                continue
            except EngineError as error:
                _log.warning("medexam: warning: %s stays out of this run: %s", endpoint.base, error)
                return
            self.add(endpoint)
            return


def _open_client(endpoint: Endpoint, timeout_s: float) -> Any:
    import httpx
    from openai import AsyncOpenAI, DefaultAioHttpClient

    limits = httpx.Limits(max_connections=MOST, max_keepalive_connections=MOST, keepalive_expiry=_KEEP_ALIVE_S)
    timeout = httpx.Timeout(timeout_s, connect=min(10.0, timeout_s))
    client = AsyncOpenAI(
        base_url=endpoint.base,
        api_key=endpoint.key,
        max_retries=0,
        timeout=timeout,
        http_client=DefaultAioHttpClient(limits=limits, timeout=timeout),
    )
    network().close_at_exit(client)
    return client
