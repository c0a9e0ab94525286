"""The servers of one model: which one is asked next, which one cools down after a failure, and which come instead.

It knows addresses and failures; what is said to a server is its callers' business.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from medexam.errors import ConfigurationError, EndpointSilentError, EngineError, MedExamError, TransportError
from medexam.serve.network.connections import open_model_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.retry import CURABLE, ask_again, is_refusal
from medexam.serve.pool.adaptive_limit import AdaptiveLimit
from medexam.serve.timing import TIMING
from medexam.serve.waits import is_too_long

T = TypeVar("T")

_LONGEST_COOLDOWN = 12
"""After n failures in a row a server is left alone n times as long, up to this factor."""

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
    """Prompts that it was sent and has not answered."""
    failures: int = 0
    """Failed calls in a row."""
    retry_at: float = 0.0
    """End of its cooldown, on the monotonic clock."""
    gone: bool = False
    """It is asked nothing more; it may still answer what it was asked."""
    unverified: bool = False
    """Its connection was lost, so another model may answer at its address now."""
    check_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while one call verifies it, so that the others do not verify it too."""

    def ready(self, now: float) -> bool:
        """Return whether it may be asked; one that failed is asked one thing at a time after its cooldown, until it
        answers.

        More at once would all be lost if it is still gone.
        """
        return not self.failures or (now >= self.retry_at and not self.outstanding)

    @contextmanager
    def calling(self, weight: int) -> Iterator[None]:
        """Count prompts as outstanding."""
        self.outstanding += weight
        try:
            yield
        finally:
            self.outstanding -= weight

    def record_failure(self, fault: Exception) -> None:
        """Begin a cooldown: as long as the server asks for, or longer with each failure in a row.

        What fails during a cooldown failed with the rest: a server that dies loses all its calls at once, and would
        otherwise be left alone for a minute after a restart of seconds.
        """
        lost = isinstance(fault, TransportError) or getattr(fault, "status", None) in _GATEWAY
        self.unverified = self.unverified or lost
        now = time.monotonic()
        if self.failures and now < self.retry_at:
            return
        self.failures += 1
        cooldown_s = getattr(fault, "retry_after", None) or TIMING.cooldown_s * min(self.failures, _LONGEST_COOLDOWN)
        self.retry_at = now + cooldown_s


@dataclass
class ServerPool:
    """The servers that take part. It belongs to the background loop."""

    endpoints: Iterable[Endpoint]
    timeout_s: float
    """Seconds one request may take, waiting in the server's queue included."""
    wait_s: float = 0.0
    """Seconds that a call waits for a server if all are gone."""
    sharers: int = 1
    """Processes that ask the same servers."""
    check: Callable[[Endpoint], Awaitable[None]] | None = None
    """Raises `EngineError` unless the model at an address is still the one that was asked first; `EndpointSilentError`
    while nothing answers there. None: every server is trusted."""
    find: Callable[[], Iterable[Endpoint]] | None = None
    """Lists the servers there are; read again after a fault. None: those of `endpoints` alone."""
    admit: Callable[[Endpoint], Awaitable[None]] | None = None
    """Raises `EngineError` for a new server that must stay out, `EndpointSilentError` while it does not answer."""
    servers: list[Server] = field(default_factory=list)
    """All that ever took part."""
    limit: AdaptiveLimit = field(init=False)
    """How many requests may be in flight; the caller tracks its requests with it."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _rejected: set[str] = field(default_factory=set)
    """Addresses of servers that serve something else."""
    _looked_at: float = 0.0
    """When it was last found out which servers there are, on the monotonic clock; infinite while it is."""

    def __post_init__(self) -> None:
        self.limit = AdaptiveLimit(self.timeout_s, servers=0, sharers=self.sharers)
        for endpoint in self.endpoints:
            self.add(endpoint)

    @property
    def active(self) -> list[Server]:
        """Those that take part now."""
        return [server for server in self.servers if not server.gone]

    def add(self, endpoint: Endpoint) -> None:
        """Let a server take part."""
        self.servers.append(Server(endpoint, open_model_client(endpoint, self.timeout_s)))
        self.limit.add_server()

    def remove(self, server: Server) -> None:
        """Ask a server nothing more."""
        server.gone = True
        self.limit.remove_server()

    async def look_again(self) -> None:
        """Find out after a fault which servers there are: add new ones, and remove those that are listed no more."""
        if self.find is None or self.admit is None or time.monotonic() < self._looked_at + TIMING.poll_s:
            return
        self._looked_at = math.inf
        try:
            listed = {endpoint.base: endpoint for endpoint in await asyncio.to_thread(self.find)}
            for server in self.active:
                if server.endpoint.base not in listed:
                    self.remove(server)
                    if not self.active:
                        _log.warning(
                            "medexam: warning: the last server has left the registry; waiting %.0f s for another",
                            self.wait_s,
                        )
            # One that left the registry may come back as another, so it is probed again then.
            self._rejected &= listed.keys()
            addresses = self._rejected | {server.endpoint.base for server in self.active}
            new = [endpoint for base, endpoint in listed.items() if base not in addresses]
            faults = await asyncio.gather(*map(self.admit, new), return_exceptions=True)
            for endpoint, fault in zip(new, faults, strict=True):
                if fault is None:
                    self.add(endpoint)
                elif not isinstance(fault, EndpointSilentError):
                    self._rejected.add(endpoint.base)
                    _log.warning("medexam: warning: %s stays out of this run: %s", endpoint.base, fault)
        except MedExamError as error:
            # A file that cannot be read now says nothing of the servers, which may well run on.
            _log.warning("medexam: warning: %s; the known servers are kept", error)
        finally:
            self._looked_at = time.monotonic()

    async def available(self) -> list[Endpoint]:
        """List the servers that take part now, waiting for one if there is none; raises `TransportError`."""
        if not self.active:
            await self._wait_for_server()
        return [server.endpoint for server in self.active]

    def least_busy(self) -> Server | None:
        """Choose of the servers that are ready the one with the fewest outstanding prompts; else the one that failed
        least.

        None if there is no server.
        """
        now, active = time.monotonic(), self.active
        if ready := [server for server in active if server.ready(now)]:
            return min(ready, key=lambda server: server.outstanding)
        # All cool down: the one that failed least is the likeliest to be back.
        return min(active, key=lambda server: (server.failures, server.retry_at), default=None)

    async def call(self, send: Callable[[Server], Awaitable[T]], *, weight: int) -> T:
        """Return what `send` returns for the least busy server; a curable failure is tried again, elsewhere or later.

        `weight` is the number of prompts sent.
        """

        async def attempt() -> T:
            server = self.least_busy() or await self._wait_for_server()
            try:
                # Counted before the await: calls that begin meanwhile must see it, or all would take the same server.
                with server.calling(weight):
                    reply = await send(server)
                    # Only now: a reply of another model, started at the same address, must not count as this one's.
                    await self._verify(server)
            except CURABLE as fault:
                server.record_failure(fault)
                if is_refusal(fault):
                    self.limit.record_refusal()
                await self.look_again()
                raise
            server.failures = 0
            return reply

        return await ask_again(attempt, timeout_s=self.timeout_s, elsewhere=self._any_ready)

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until the pool is closed."""
        task = asyncio.get_running_loop().create_task(work)
        # The event loop keeps only weak references to tasks: without this one it could vanish.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End the background work and close the connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self.servers:
            await server.client.close()

    async def _verify(self, server: Server) -> None:
        """Find out whether a server that replies after a loss is the same; raises `TransportError` if it is silent.

        One that serves another model now is removed; if it was the last, `ConfigurationError` ends the run.
        """
        if not server.unverified or self.check is None:
            return
        async with server.check_lock:
            # Calls that waited for the lock find that the first one of them has verified it.
            if not server.unverified:
                return
            try:
                await self.check(server.endpoint)
            except EndpointSilentError as error:
                raise TransportError(str(error)) from error
            except EngineError as error:
                self.remove(server)
                self._rejected.add(server.endpoint.base)
                if not self.active:
                    raise ConfigurationError(
                        f"{server.endpoint.base} serves another model since it is back: {error}"
                    ) from error
                _log.warning("medexam: warning: %s leaves this run: %s", server.endpoint.base, error)
                raise TransportError(str(error)) from error
            server.unverified = False

    async def _wait_for_server(self) -> Server:
        deadline = time.monotonic() + self.wait_s
        while (server := self.least_busy()) is None:
            if time.monotonic() > deadline or is_too_long(TIMING.poll_s):
                raise TransportError("the last server has left the registry, and no other has joined")
            await asyncio.sleep(TIMING.poll_s)
            await self.look_again()
        return server

    def _any_ready(self) -> bool:
        now = time.monotonic()
        return any(server.ready(now) for server in self.active)
