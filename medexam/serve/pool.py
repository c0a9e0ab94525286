"""Several servers as one: which is asked next, how much is in flight, and which prompts share a request.

It knows addresses, failures and counts; what is said to a server is its callers' business.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from medexam.errors import (
    CallError,
    ConfigurationError,
    EndpointSilentError,
    EngineError,
    InvalidRequestError,
    MedExamError,
    ProviderError,
    TransportError,
)
from medexam.model_identity import ModelIdentity
from medexam.serve.engines.litellm_calls import PASS_ON, ModelClient, call_litellm
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import find_words, open_client
from medexam.serve.network.retry import CURABLE, TIMING, ask_again, is_too_long

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")

_GATEWAY = (502, 504)
"""What a gateway answers when the server behind it is gone."""
_STREAM: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
_GATHER_S = 0.002
"""What the first prompt of a batch waits for others."""

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Server:
    """A server, or a provider, as this process sees it."""

    model: str
    """The model as the server, or litellm of a provider's, names it."""
    connection: dict[str, Any]
    """The fields by which litellm reaches it."""
    endpoint: Endpoint | None = None
    """Where it is; None for a provider."""
    http: Any = None
    """The connections to `endpoint`."""
    outstanding: int = 0
    """Prompts that it was sent and has not answered."""
    failed: bool = False
    """Its latest call failed."""
    retry_at: float = 0.0
    """End of its cooldown, on the monotonic clock."""
    unverified: bool = False
    """Its connection was lost, so another model may answer at its address now."""
    streams: bool = False
    """Replies to dialogues are asked for as streams, since it gives no others."""
    check_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while one call verifies it, so that the others do not verify it too."""

    @classmethod
    def at(cls, endpoint: Endpoint, model: str, timeout_s: float) -> "Server":
        """Open the connections to a server."""
        http = open_client(endpoint, timeout_s)
        connection = {"api_base": endpoint.base, "api_key": endpoint.key, "client": ModelClient(endpoint, http)}
        return cls(model, connection, endpoint, http)

    async def chat(self, fields: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Ask for the reply to a dialogue, and return its object; by a stream where nothing else is given or wanted."""
        stream = _STREAM if self.streams or PASS_ON.get() else {}
        if self.endpoint is None:
            # With tools litellm would import a package for tools of another kind.
            tools = {"_skip_mcp_handler": True} if fields.get("tools") else {}
            call = {**fields, **tools, **self.connection, **stream}
            return await call_litellm("acompletion", self.model, timeout_s=timeout_s, own=False, **call)
        body = {name: value for name, value in fields.items() if name != "messages"}
        call = {"messages": fields["messages"], "extra_body": body, "timeout_s": timeout_s, **self.connection}
        ask = partial(call_litellm, "acompletion", f"openai/{self.model}", own=True, _skip_responses_api_bridge=True)
        try:
            return await ask(**call, **stream)
        except ProviderError as fault:
            if stream or not find_words("streams_alone", fault.message):
                raise
        reply = await ask(**call, **_STREAM)
        self.streams = True
        return reply

    async def complete(self, prompt: Any, fields: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Ask for completions of one or several prompts, and return the reply's object."""
        call = {"prompt": prompt, "extra_body": dict(fields), "timeout_s": timeout_s, **self.connection}
        return await call_litellm("atext_completion", f"text-completion-openai/{self.model}", own=True, **call)

    async def close(self) -> None:
        """Close the connections; litellm closes those that it opened itself."""
        if (client := self.connection.get("client")) is not None:
            await client.close()

    def is_ready(self) -> bool:
        """Return whether it may be asked; after its cooldown one that failed is asked one thing, until it answers."""
        return not self.failed or (time.monotonic() >= self.retry_at and not self.outstanding)

    def record_failure(self, fault: CallError) -> None:
        """Begin a cooldown, as long as the server asks for; what fails during one failed with the rest."""
        lost = isinstance(fault, TransportError) or fault.status in _GATEWAY
        self.unverified = self.unverified or (lost and self.endpoint is not None)
        now = time.monotonic()
        if not self.failed or now >= self.retry_at:
            self.failed, self.retry_at = True, now + (fault.retry_after or TIMING.cooldown_s)


class ServerPool:
    """The servers of one model that take part. It belongs to the background loop."""

    def __init__(
        self,
        servers: Iterable[Server],
        timeout_s: float,
        *,
        wait_s: float = 0.0,
        find: Callable[[], Iterable[Endpoint]] = tuple,
        identity: ModelIdentity,
        look: Callable[[Server], Awaitable[ModelIdentity]],
        admit: Callable[[Endpoint], Awaitable[Server]] | None = None,
    ) -> None:
        """Begin with these servers.

        `timeout_s` is what one request may take, waiting in the server's queue included, and `wait_s` what a call waits
        for a server if all are gone. `find` lists the servers there are; it is asked again after a fault.
        `identity` is the model that was asked first. `look` returns the one at a server now, and raises
        `EndpointSilentError` while nothing answers there. `admit` opens a new server and raises so unless it can
        replace the others; None: the servers stay as they are.
        """
        self.timeout_s, self._wait_s, self._find = timeout_s, wait_s, find
        self.patience_s: float | None = None
        """Seconds after which no fault is waited out; None: as long as a run waits."""
        self.identity, self._look, self._admit = identity, look, admit
        self.opened = list(servers)
        """All that ever took part, in their order."""
        self.servers: dict[str, Server] = {_base(server): server for server in self.opened}
        """Address -> server."""
        self._rejected: set[str] = set()
        """Addresses of servers that serve something else."""
        self._next_look = 0.0
        """When it may be found out again which servers there are, on the monotonic clock; infinite while it is."""

    async def look_again(self) -> None:
        """Find out after a fault which servers there are: add new ones, and remove those that are listed no more."""
        if self._admit is None or time.monotonic() < self._next_look:
            return
        self._next_look = float("inf")
        try:
            listed = {endpoint.base: endpoint for endpoint in await asyncio.to_thread(self._find)}
            for base in self.servers.keys() - listed.keys():
                del self.servers[base]
                if not self.servers:
                    _log.warning(
                        "medexam: warning: the last server has left the registry; waiting %.0f s for another",
                        self._wait_s,
                    )
            # One that left the registry may come back as another, so it is probed again then.
            self._rejected &= listed.keys()
            new = [base for base in listed if base not in self._rejected and base not in self.servers]
            outcomes = await asyncio.gather(*(self._admit(listed[base]) for base in new), return_exceptions=True)
            for base, outcome in zip(new, outcomes, strict=True):
                if isinstance(outcome, Server):
                    self.servers[base] = outcome
                    self.opened.append(outcome)
                elif not isinstance(outcome, EndpointSilentError):
                    self._rejected.add(base)
                    _log.warning("medexam: warning: %s stays out of this run: %s", base, outcome)
        except MedExamError as error:
            # A file that cannot be read now says nothing of the servers, which may well run on.
            _log.warning("medexam: warning: %s; the known servers are kept", error)
        finally:
            self._next_look = time.monotonic() + TIMING.poll_s

    async def _least_busy(self) -> Server:
        """Choose of the servers that are ready the one with the fewest outstanding prompts; else the next that is.

        Wait for one if there is none; raises `TransportError`.
        """
        deadline = time.monotonic() + self._wait_s
        while not self.servers:
            if time.monotonic() > deadline or is_too_long(TIMING.poll_s):
                raise TransportError("the last server has left the registry, and no other has joined")
            await asyncio.sleep(TIMING.poll_s)
            await self.look_again()
        return min(
            self.servers.values(),
            key=lambda server: (0, server.outstanding) if server.is_ready() else (1, server.retry_at),
        )

    async def call(self, send: Callable[[Server], Awaitable[T]], *, weight: int = 1) -> T:
        """Return what `send` returns for the least busy server; a curable failure is tried again, elsewhere or later.

        `weight` is the number of prompts sent.
        """

        async def attempt() -> T:
            server = await self._least_busy()
            # Counted before the await: calls that begin meanwhile must see it, or all would take the same server.
            server.outstanding += weight
            try:
                reply = await send(server)
                # Only now: a reply of another model, started at the same address, must not count as this one's.
                if server.unverified:
                    await self._verify(server)
            except CURABLE as fault:
                server.record_failure(fault)
                await self.look_again()
                raise
            finally:
                server.outstanding -= weight
            server.failed = False
            return reply

        return await ask_again(
            attempt,
            timeout_s=self.timeout_s,
            patience_s=self.patience_s,
            elsewhere=lambda: any(server.is_ready() for server in self.servers.values()),
        )

    async def close(self) -> None:
        """Close the connections."""
        for server in self.opened:
            await server.close()

    async def check(self, server: Server) -> None:
        """Raise `EngineError` for a server of another model, and `EndpointSilentError` if that cannot be told now."""
        # Twice, since a hosted model may reply otherwise once.
        for _ in "12":
            now = await self._look(server)
            if self.identity.shows_more_than(now):
                raise EndpointSilentError(f"{_base(server)} does not show which model it serves; wait until it does")
            if not (differences := self.identity.differences(now)):
                return
        raise EngineError("; ".join(differences))

    async def _verify(self, server: Server) -> None:
        """Find out whether a server that replies after a loss is the same; raises `TransportError` if it is silent.

        One that serves another model now is removed; if it was the last, `ConfigurationError` ends the run.
        """
        cooldown_end = server.retry_at
        async with server.check_lock:
            # Calls that waited for the lock share what the first one of them found: each look may take long.
            if not server.unverified:
                return
            if server.retry_at > cooldown_end:
                raise TransportError(f"{_base(server)} is still silent")
            base = _base(server)
            try:
                await self.check(server)
            except EndpointSilentError as error:
                raise TransportError(str(error)) from error
            except EngineError as error:
                self._rejected.add(base)
                self.servers.pop(base, None)
                if not self.servers:
                    raise ConfigurationError(f"{base} serves another model since it is back: {error}") from error
                _log.warning("medexam: warning: %s leaves this run: %s", base, error)
                raise TransportError(str(error)) from error
            server.unverified = False


def _base(server: Server) -> str:
    return server.endpoint.base if server.endpoint else ""


class Batcher(Generic[Item, Result]):
    """Groups items of equal keys and sends each group as one batch; it belongs to one event loop.

    A request costs the client more than a prompt does. While all `slots` are taken, waiting costs nothing and batches
    grow.
    """

    def __init__(
        self, send: Callable[[str, list[Item]], Awaitable[Sequence[Result]]], most: int, slots: Callable[[], int]
    ) -> None:
        """Set up the batches, of `most` items; `slots` returns how many may be on their way.

        `send` returns one result per item, in order. A batch that is refused is halved until the culprit is alone, so
        that one bad item does not spoil the others.
        """
        self._send, self._most, self._slots = send, most, slots
        self._pending: dict[str, list[tuple[Item, asyncio.Future[Result]]]] = {}
        # The event loop keeps only weak references to tasks: without these a batch could vanish.
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, key: str, item: Item) -> Result:
        """Submit an item and return its result; items with equal keys may share a batch."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        group = self._pending.setdefault(key, [])
        group.append((item, future))
        # What sends a batch continues while anything is pending, so the first of each batch alone needs another.
        if len(group) % self._most in (0, 1) and len(self._tasks) < self._slots():
            task = asyncio.get_running_loop().create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _work(self) -> None:
        await asyncio.sleep(_GATHER_S)
        while self._pending:
            key = next(iter(self._pending))
            group = self._pending.pop(key)
            if group[self._most :]:
                # Behind the others, so that no key waits for all items of another.
                self._pending[key] = group[self._most :]
            # A caller that was cancelled has cancelled its future; its item would be computed for nobody.
            group = [(item, future) for item, future in group[: self._most] if not future.done()]
            try:
                outcomes = await self._send_halving(key, [item for item, _ in group]) if group else []
            except asyncio.CancelledError:
                # The loop is closing: callers that waited on would never be woken.
                for _, future in group:
                    future.cancel()
                raise
            for (_, future), outcome in zip(group, outcomes, strict=True):
                # One that was cancelled while its batch was sent is done already, and would refuse a result.
                if future.done():
                    continue
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    async def _send_halving(self, key: str, items: list[Item]) -> list[Result | Exception]:
        try:
            return list(await self._send(key, items))
        except Exception as error:
            if not isinstance(error, InvalidRequestError) or len(items) == 1:
                return [error] * len(items)
        # The error does not say whose prompt it was; halving finds it with few requests more.
        halves = (items[: len(items) // 2], items[len(items) // 2 :])
        first, second = await asyncio.gather(*(self._send_halving(key, half) for half in halves))
        return first + second
