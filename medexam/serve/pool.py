"""Several servers as one: which is asked next, how much is in flight, and which prompts share a request.

It knows addresses, failures and counts; what is said to a server is its callers' business.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import httpx

from medexam.errors import (
    ConfigurationError,
    EndpointSilentError,
    EngineError,
    InvalidRequestError,
    MedExamError,
    TransportError,
)
from medexam.serve.asking import is_too_long
from medexam.serve.network.connections import MOST_CONNECTIONS, open_model_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.retry import CURABLE, ask_again, is_refusal
from medexam.serve.timing import TIMING

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")

_LEAST = 16
"""Requests that are in flight at a server however much it refuses."""
_LATE = 0.25
"""Requests that take more than this share of their time limit mean that too many are in flight."""
_SETTLED_S = 0.25
"""A server that is full refuses many requests at once, which count as one refusal."""
_GATEWAY = (502, 504)
"""What a gateway answers when the server behind it is gone."""
_LONGEST_COOLDOWN = 12
"""After n failures in a row a server is left alone n times as long, up to this factor."""
_GATHER_S = 0.002
"""What a prompt waits for others while the servers are not busy."""

_log = logging.getLogger(__name__)


class Limit:
    """How many requests may be in flight: more with each answer, half as many when a server refuses or is late.

    Until the first setback each answer adds one, and then each round of answers does.
    """

    def __init__(self, timeout_s: float, initial: int, *, servers: int = 1, sharers: int = 1) -> None:
        """Begin with `initial` requests for each of `servers`; `sharers` processes ask them, with a limit each."""
        self._timeout_s = timeout_s
        self._least, self._most = (max(1, number // sharers) for number in (_LEAST, MOST_CONNECTIONS))
        self._initial = min(initial, self._most)
        self._servers = servers
        self._value = float(self._initial * servers)
        self._set_back_at: float | None = None
        self.in_flight = 0

    @property
    def value(self) -> int:
        """How many may be in flight now."""
        return int(self._value)

    def add_server(self) -> None:
        """Raise the limit for one more server."""
        self._servers += 1
        self._value += self._initial

    def remove_server(self) -> None:
        """Lower the limit by one server's share; without servers, as many requests may wait as for one."""
        self._value *= (self._servers - 1) / self._servers
        self._servers -= 1
        self._change_to(self._value)

    @contextmanager
    def track(self) -> Iterator[None]:
        """Count a request as in flight; it counts as answered unless an exception ends the block."""
        start = time.monotonic()
        self.in_flight += 1
        # A limit that is not reached does not hold anything down; a higher one would change nothing.
        full = self.in_flight >= self.value
        try:
            yield
        finally:
            self.in_flight -= 1
        if time.monotonic() - start > _LATE * self._timeout_s:
            if self._set_back_at is None or start > self._set_back_at:
                self._set_back()
        elif full:
            self._change_to(self._value + (1 if self._set_back_at is None else 1 / self._value))

    def record_refusal(self) -> None:
        """Halve the limit because a server has too much to do."""
        if self._set_back_at is None or time.monotonic() - self._set_back_at >= _SETTLED_S:
            self._set_back()

    def _set_back(self) -> None:
        self._set_back_at = time.monotonic()
        self._change_to(self._value / 2)

    def _change_to(self, value: float) -> None:
        servers = max(self._servers, 1)
        self._value = min(max(value, self._least * servers), self._most * servers)


@dataclass
class Server:
    """One server as this process sees it."""

    endpoint: Endpoint
    client: Any
    """An `AsyncOpenAI`, which litellm uses instead of one of its own."""
    http: httpx.AsyncClient
    """The connections of `client`."""
    outstanding: int = 0
    """Prompts that it was sent and has not answered."""
    failures: int = 0
    """Failed calls in a row."""
    retry_at: float = 0.0
    """End of its cooldown, on the monotonic clock."""
    unverified: bool = False
    """Its connection was lost, so another model may answer at its address now."""
    check_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while one call verifies it, so that the others do not verify it too."""

    @property
    def connection(self) -> dict[str, Any]:
        """The fields by which litellm reaches it."""
        return {"api_base": self.endpoint.base, "api_key": self.endpoint.key, "client": self.client}

    def ready(self, now: float) -> bool:
        """Return whether it may be asked; after its cooldown one that failed is asked one thing, until it answers."""
        return not self.failures or (now >= self.retry_at and not self.outstanding)

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


class ServerPool:
    """The servers of one model that take part. It belongs to the background loop."""

    def __init__(
        self, endpoints: Iterable[Endpoint], timeout_s: float, initial: int, wait_s: float = 0.0, sharers: int = 1
    ) -> None:
        """Begin with these servers; `initial` and `sharers` are those of `Limit`.

        `timeout_s` is what one request may take, waiting in the server's queue included, and `wait_s` what a call waits
        for a server if all are gone.
        """
        self.timeout_s, self.wait_s = timeout_s, wait_s
        self.active: list[Server] = []
        self.ever: list[Server] = []
        """All that ever took part."""
        self.limit = Limit(timeout_s, initial, servers=0, sharers=sharers)
        """How many requests may be in flight; the caller tracks its requests with it."""
        self.check: Callable[[Endpoint], Awaitable[None]] | None = None
        """Raises `EngineError` unless the model at an address is still the one that was asked first;
        `EndpointSilentError` while nothing answers there. None: every server is trusted."""
        self.find: Callable[[], Iterable[Endpoint]] | None = None
        """Lists the servers there are; read again after a fault. None: the first ones alone."""
        self.admit: Callable[[Endpoint], Awaitable[None]] | None = None
        """Raises `EngineError` for a new server that must stay out, `EndpointSilentError` while it does not answer."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._rejected: set[str] = set()
        """Addresses of servers that serve something else."""
        self._looked_at = 0.0
        """When it was last found out which servers there are, on the monotonic clock; infinite while it is."""
        for endpoint in endpoints:
            self._add(endpoint)

    def _add(self, endpoint: Endpoint) -> None:
        server = Server(endpoint, *open_model_client(endpoint, self.timeout_s))
        self.active.append(server)
        self.ever.append(server)
        self.limit.add_server()

    def _remove(self, server: Server) -> None:
        """Ask a server nothing more; it may still answer what it was asked."""
        self.active.remove(server)
        self.limit.remove_server()

    async def look_again(self) -> None:
        """Find out after a fault which servers there are: add new ones, and remove those that are listed no more."""
        if self.find is None or self.admit is None or time.monotonic() < self._looked_at + TIMING.poll_s:
            return
        self._looked_at = math.inf
        try:
            listed = {endpoint.base: endpoint for endpoint in await asyncio.to_thread(self.find)}
            for server in [server for server in self.active if server.endpoint.base not in listed]:
                self._remove(server)
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
                    self._add(endpoint)
                elif not isinstance(fault, EndpointSilentError):
                    self._rejected.add(endpoint.base)
                    _log.warning("medexam: warning: %s stays out of this run: %s", endpoint.base, fault)
        except MedExamError as error:
            # A file that cannot be read now says nothing of the servers, which may well run on.
            _log.warning("medexam: warning: %s; the known servers are kept", error)
        finally:
            self._looked_at = time.monotonic()

    async def least_busy(self) -> Server:
        """Choose of the servers that are ready the one with the fewest outstanding prompts; else the one that failed
        least. Wait for one if there is none; raises `TransportError`.
        """
        deadline = time.monotonic() + self.wait_s
        while not self.active:
            if time.monotonic() > deadline or is_too_long(TIMING.poll_s):
                raise TransportError("the last server has left the registry, and no other has joined")
            await asyncio.sleep(TIMING.poll_s)
            await self.look_again()
        now = time.monotonic()
        if ready := [server for server in self.active if server.ready(now)]:
            return min(ready, key=lambda server: server.outstanding)
        # All cool down: the one that failed least is the likeliest to be back.
        return min(self.active, key=lambda server: (server.failures, server.retry_at))

    async def call(self, send: Callable[[Server], Awaitable[T]], *, weight: int = 1) -> T:
        """Return what `send` returns for the least busy server; a curable failure is tried again, elsewhere or later.

        `weight` is the number of prompts sent.
        """

        async def attempt() -> T:
            server = await self.least_busy()
            # Counted before the await: calls that begin meanwhile must see it, or all would take the same server.
            server.outstanding += weight
            try:
                reply = await send(server)
                # Only now: a reply of another model, started at the same address, must not count as this one's.
                await self._verify(server)
            except CURABLE as fault:
                server.record_failure(fault)
                if is_refusal(fault):
                    self.limit.record_refusal()
                await self.look_again()
                raise
            finally:
                server.outstanding -= weight
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
        for server in self.ever:
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
                self._rejected.add(server.endpoint.base)
                if server in self.active:
                    self._remove(server)
                if not self.active:
                    raise ConfigurationError(
                        f"{server.endpoint.base} serves another model since it is back: {error}"
                    ) from error
                _log.warning("medexam: warning: %s leaves this run: %s", server.endpoint.base, error)
                raise TransportError(str(error)) from error
            server.unverified = False

    def _any_ready(self) -> bool:
        now = time.monotonic()
        return any(server.ready(now) for server in self.active)


class Batcher(Generic[Item, Result]):
    """Groups items of equal keys and sends each group as one batch; it belongs to one event loop.

    A request costs the client more than a prompt does. While the servers are busy, waiting costs nothing and batches
    grow; when they are about to run out of work, what is pending is sent.
    """

    def __init__(
        self,
        send: Callable[[str, list[Item]], Awaitable[Sequence[Result]]],
        most: Callable[[], int],
        busy_at: Callable[[], int],
    ) -> None:
        """Set up the batches; `send` returns one result per item, in order.

        `most` returns the most items of a batch, and `busy_at` the number in flight that keep the servers busy. A batch
        that is refused is halved until the culprit is alone, so that one bad item does not spoil the others.
        """
        self._send, self._most, self._busy_at = send, most, busy_at
        self._pending: dict[str, list[tuple[Item, asyncio.Future[Result]]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_flight = 0

    async def submit(self, key: str, item: Item) -> Result:
        """Submit an item and return its result; items with equal keys may share a batch."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        group = self._pending.setdefault(key, [])
        group.append((item, future))
        if len(group) >= self._most():
            self._dispatch(key)
        else:
            self._start_timer()
        return await future

    def _start_timer(self) -> None:
        # Without a timer while the servers are busy, pending items wait for `_finish`, which calls this again.
        if self._timer is None and self._pending and self._in_flight < self._busy_at():
            self._timer = asyncio.get_running_loop().call_later(_GATHER_S, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        for key in list(self._pending):
            # Asked for each key: what the first one sends may keep the servers busy, and the others still grow.
            if self._in_flight < self._busy_at():
                self._dispatch(key)

    def _dispatch(self, key: str) -> None:
        # A caller that was cancelled has cancelled its future; its item would be computed for nobody.
        group = [(item, future) for item, future in self._pending.pop(key) if not future.done()]
        if not group:
            return
        task = asyncio.get_running_loop().create_task(self._send_group(key, group))
        # The event loop keeps only weak references to tasks: without these a batch could vanish.
        self._tasks.add(task)
        self._in_flight += len(group)
        task.add_done_callback(partial(self._finish, len(group)))

    def _finish(self, items: int, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._in_flight -= items
        self._start_timer()

    async def _send_group(self, key: str, group: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._send(key, [item for item, _ in group])
        except asyncio.CancelledError:
            # The loop is closing: callers that waited on would never be woken.
            for _, future in group:
                future.cancel()
            raise
        except Exception as error:
            if isinstance(error, InvalidRequestError) and len(group) > 1:
                # The error does not say whose prompt it was; halving finds it with few requests more.
                middle = len(group) // 2
                await asyncio.gather(self._send_group(key, group[:middle]), self._send_group(key, group[middle:]))
                return
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
        else:
            for (_, future), result in zip(group, results, strict=True):
                # One that was cancelled while its batch was sent is done already, and would refuse a result.
                if not future.done():
                    future.set_result(result)
