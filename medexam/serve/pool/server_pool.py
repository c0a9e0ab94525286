"""The servers of one model: which is asked next, which one rests after a fault, and which one comes back.

It knows addresses and faults; what is said to a server is its callers' business.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dspy.lm15 import ConfigurationError, TransportError

from medexam.errors import EndpointSilentError, EngineError
from medexam.serve.network.connections import open_model_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.retry import CURABLE, ask_again, is_refusal
from medexam.serve.pool.adaptive_limit import AdaptiveLimit

T = TypeVar("T")

REST_S = 5.0
"""Seconds that a server is left alone after it failed, while others answer; and between looks for an absent one."""
_LONGEST_REST = 12
"""No rest is longer than so many of the shortest."""

_GATEWAY = (502, 504)
"""What a gateway answers when the server behind it is gone."""

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

    leaving: bool = False
    """It takes part no more; its connections close with its last answer."""
    doubted: bool = False
    """Its connection was lost, so another model may stand behind its address now."""
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is found out which model answers."""

    def ready(self, now: float) -> bool:
        """Whether it may be asked; one that failed is asked one thing at a time after its rest, until it answers."""
        return not self.faults or (now >= self.rests_until and not self.outstanding)

    def fail(self, fault: Exception) -> None:
        """A call met a fault: rest as long as the server asks, or the longer the more faults in a row."""
        self.faults += 1
        self.doubted = self.doubted or isinstance(fault, TransportError) or getattr(fault, "status", None) in _GATEWAY
        rest_s = getattr(fault, "retry_after", None) or REST_S * min(self.faults, _LONGEST_REST)
        self.rests_until = time.monotonic() + rest_s


@dataclass
class ServerPool:
    """The servers that take part. They belong to the network loop."""

    endpoints: Iterable[Endpoint]
    timeout_s: float
    """Seconds one request may take, waiting in the server's queue included."""
    wait_s: float = 0.0
    """Seconds that a call waits for a server to take part where none does."""
    check: Callable[[Endpoint], Awaitable[None]] | None = None
    """Raises `EngineError` unless the model at an address is still the one that was asked first; `EndpointSilentError`
    while nothing answers there. None believes every server."""
    live: list[Server] = field(default_factory=list)
    """Those that take part now."""
    bases: list[str] = field(default_factory=list)
    """Addresses of all that ever took part."""
    load: AdaptiveLimit = field(init=False)
    """How many requests they are given at once; whoever gives them says when one begins and ends."""
    _looks: set[asyncio.Task[None]] = field(default_factory=set)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while a server takes part."""

    def __post_init__(self) -> None:
        self.load = AdaptiveLimit(self.timeout_s, servers=0)
        for endpoint in self.endpoints:
            self.add(endpoint)

    def add(self, endpoint: Endpoint) -> None:
        """Let a server take part."""
        self.live.append(Server(endpoint, open_model_client(endpoint, self.timeout_s)))
        self.load.add_server()
        if endpoint.base not in self.bases:
            self.bases.append(endpoint.base)
        self._arrived.set()

    async def remove(self, base: str) -> None:
        """Ask the server at this address nothing more; what it was asked, it may still answer."""
        for server in [one for one in self.live if one.endpoint.base == base]:
            self.live.remove(server)
            self.load.remove_server()
            server.leaving = True
            await self._close_idle(server)
        if not self.live:
            self._arrived.clear()

    async def there(self) -> list[Endpoint]:
        """The servers that take part now, waiting for one where there is none; raises `TransportError`."""
        if not self.live:
            await self._next_arrival()
        return [server.endpoint for server in self.live]

    def least_busy(self) -> Server | None:
        """The server with the fewest prompts outstanding, of those that are ready; else the one that failed least.

        None where none takes part.
        """
        if not self.live:
            return None
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
            first = None if preferred is None or preferred.leaving else preferred
            server, preferred = first or self.least_busy() or await self._next_arrival(), None
            server.outstanding += weight
            try:
                reply = await send(server)
                await self._check_again(server)
            except CURABLE as fault:
                server.fail(fault)
                if is_refusal(fault):
                    self.load.refuse()
                raise
            finally:
                server.outstanding -= weight
                await self._close_idle(server)
            server.faults = 0
            return reply

        return await ask_again(attempt, timeout_s=self.timeout_s, elsewhere=self._any_ready)

    def look_for(self, endpoint: Endpoint, probe: Callable[[], Awaitable[None]]) -> None:
        """Let a server take part as soon as `probe` finds it there.

        Where `probe` raises another `EngineError` than that the server is silent, the server stays out.
        """
        self.accompany(self._look(endpoint, probe))

    def accompany(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this as long as the servers are used."""
        task = asyncio.get_running_loop().create_task(work)
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)

    async def close(self) -> None:
        """Close the connections."""
        for task in self._looks:
            task.cancel()
        await asyncio.gather(*self._looks, return_exceptions=True)
        for server in self.live:
            await server.client.close()

    async def _check_again(self, server: Server) -> None:
        """Find out whether a server that replies after a loss is the same; raises `TransportError` if it is silent.

        One that serves another model now takes part no more; where it was the last, `EngineError` ends the run.
        """
        if not server.doubted or self.check is None:
            return
        async with server.checking:
            if not server.doubted:
                return
            try:
                await self.check(server.endpoint)
            except EndpointSilentError as error:
                raise TransportError(str(error)) from error
            except EngineError as error:
                await self.remove(server.endpoint.base)
                if not self.live:
                    raise ConfigurationError(f"{server.endpoint.base} came back as another: {error}") from error
                _log.warning("medexam: warning: %s leaves this run: %s", server.endpoint.base, error)
                raise TransportError(str(error)) from error
            server.doubted = False

    async def _next_arrival(self) -> Server:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), self.wait_s)
        server = self.least_busy()
        if server is None:
            raise TransportError("the last server has left the registry, and none came")
        return server

    async def _close_idle(self, server: Server) -> None:
        if server.leaving and not server.outstanding:
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
