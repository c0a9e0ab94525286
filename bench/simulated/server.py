"""A simulated model server: what it answers when, and how it fails.

It works on its prompts in the order in which they come, on at most `slots` at once (vLLM's `max_num_seqs`). A prompt
takes `latency_s` from its start, and no two end closer together than 1 / `rate`. With c prompts always there, the
throughput is therefore the least of c / latency, slots / latency and rate (Little's law).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from medexam.errors import ServerError, TransportError

CONNECT_S = 10.0
"""After this the client gives up to connect to a machine that does not answer."""
LOST_S = 30.0
"""After this its system ends a connection to a machine that says nothing."""
BIN_S = 0.5
"""Answers are counted by spans of this length."""


class State(StrEnum):
    """What a server does with a request."""

    WORKS = "works"
    REFUSES = "refuses"
    """It replies with HTTP 503."""
    DEAD = "dead"
    """Its process ended: connections are reset, and new ones refused."""
    SILENT = "silent"
    """Its machine lost its power: nothing comes back, not even a reset."""


@dataclass(eq=False)
class _Held:
    """One request that is there."""

    prompts: int
    done: asyncio.Future[None]
    timer: asyncio.TimerHandle | None = None


@dataclass(eq=False)
class SimulatedServer:
    """A server on the running event loop's clock."""

    address: str
    rate: float
    """Prompts a second at most."""
    latency_s: float
    slots: int
    state: State = State.WORKS
    answered: dict[int, int] = field(default_factory=dict)
    """Prompts answered in each span of `BIN_S`."""
    ended: Callable[[int], None] = lambda _prompts: None
    """Hears of prompts when they are answered."""
    _held: dict[_Held, None] = field(default_factory=dict)
    """In the order of coming."""
    _ends: deque[float] = field(default_factory=deque)
    """When the last `slots` prompts end."""

    async def serve(self, prompts: int) -> None:
        """Return when all prompts of a request are answered; raises as the client's connection would."""
        if self.state is State.REFUSES:
            raise ServerError("overloaded", status=503)
        if self.state is State.DEAD:
            raise TransportError("connection refused")
        if self.state is State.SILENT:
            await asyncio.sleep(CONNECT_S)
            raise TransportError("connect timeout")
        loop = asyncio.get_running_loop()
        held = _Held(prompts, loop.create_future())
        self._held[held] = None
        self._schedule(held, loop)
        with self._leaving(held):
            await held.done

    def change(self, state: State) -> None:
        """From now on it does this; what it works on is lost unless it goes on working."""
        self.state = state
        held, self._held = self._held, {}
        self._ends.clear()
        for one in held:
            if one.timer is not None:
                one.timer.cancel()
            loop = asyncio.get_running_loop()
            loop.call_later(LOST_S if state is State.SILENT else 0.0, self._lose, one)

    @staticmethod
    def _lose(held: _Held) -> None:
        if not held.done.done():
            held.done.set_exception(TransportError("connection reset"))

    def slow_down(self, factor: float) -> None:
        """Work at this share of the rate; prompts that are there begin anew, in their order."""
        self.rate *= factor
        self.latency_s /= factor
        self._ends.clear()
        loop = asyncio.get_running_loop()
        for one in self._held:
            if one.timer is not None:
                one.timer.cancel()
            self._schedule(one, loop)

    def count(self, begin_s: float, end_s: float) -> int:
        """Prompts answered between two times, by whole spans."""
        return sum(n for place, n in self.answered.items() if begin_s <= place * BIN_S and (place + 1) * BIN_S <= end_s)

    def _schedule(self, held: _Held, loop: asyncio.AbstractEventLoop) -> None:
        now, ends = loop.time(), self._ends
        for _ in range(held.prompts):
            start = max(now, ends.popleft()) if len(ends) == self.slots else now
            ends.append(max(start + self.latency_s, ends[-1] + 1 / self.rate) if ends else start + self.latency_s)
        held.timer = loop.call_at(ends[-1], self._end, held)

    def _end(self, held: _Held) -> None:
        now = asyncio.get_running_loop().time()
        self._held.pop(held, None)
        self.answered[int(now / BIN_S)] = self.answered.get(int(now / BIN_S), 0) + held.prompts
        self.ended(held.prompts)
        if not held.done.done():
            held.done.set_result(None)

    @contextmanager
    def _leaving(self, held: _Held) -> Iterator[None]:
        """A caller that gives up leaves its place in the queue as it is: vLLM notices a lost client late."""
        try:
            yield
        finally:
            held.done.cancel()
