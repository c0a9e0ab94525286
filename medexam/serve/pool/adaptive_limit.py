"""How much a model is given at once, found from how it takes it.

More in flight is better while more comes back in the same time, and useless beyond: the number is doubled on trial,
kept where the throughput rose and taken back where it did not. A server that refuses (HTTP 429 or 503), or answers so
late that requests would time out, is given half as much. This module knows times and counts, no servers.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from medexam.serve.network.connections import MOST_CONNECTIONS

LEAST = 16
MOST = MOST_CONNECTIONS
FIRST = 128
"""Enough to see at once what a server does with many, and little to lose where it refuses."""

_GAIN = 1.08
"""A trial that brings less than this times the throughput before it is taken back."""
_PERIOD_S = 0.25
"""The shortest time over which a throughput is taken."""
_CONTENT = 16
"""Periods after a trial that failed, or a refusal, without a new trial; doubled with each of them in a row."""
_MOST_DOUBLINGS = 6
_LATE = 0.25
"""The share of its time limit that a request may take before there are too many."""


@dataclass
class _Period:
    begun: float
    done: int = 0
    waited_s: float = 0.0
    """What those that are done took, added up."""
    carried_s: float = 0.0
    """What was in flight, times how long."""
    slowest_s: float = 0.0
    full: bool = False
    """Whether as much was in flight as might be."""

    def throughput(self, now: float) -> float:
        """Requests a second, by Little's law: counting those that arrived would depend on where batches end."""
        return self.carried_s / (now - self.begun) / (self.waited_s / self.done)


@dataclass
class AdaptiveLimit:
    """A number of requests in flight that adapts itself."""

    timeout_s: float
    """Seconds that one request may take."""
    servers: int = 1
    """`LEAST`, `FIRST` and `MOST` are for each."""
    first: int = FIRST
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.value = self.first * self.servers
        """What may be in flight now."""
        self.in_flight = 0
        self._to_beat: tuple[int, float] | None = None
        """While a trial runs: the number and the throughput before it."""
        self._settling = False
        """The period after a change holds what was begun before it, and is not judged."""
        self._failures = 0
        """Trials and refusals in a row that brought nothing."""
        self._content = 0
        """Periods without a trial that are left."""
        self._period = _Period(self.clock())
        self._changed = self._period.begun

    def add_server(self) -> None:
        """One server more takes part."""
        self.servers += 1
        self.value += self.first
        self._start_anew(self.value)

    def remove_server(self) -> None:
        """One server fewer takes part; of none, as much may wait as one is given first."""
        share = self.value // max(self.servers, 1)
        self.servers = max(self.servers - 1, 0)
        self._start_anew(share * self.servers)

    @contextmanager
    def carrying(self) -> Iterator[None]:
        """One more is in flight; it counts as answered unless an exception ends the block."""
        begun = self._put(1)
        self._period.full |= self.in_flight >= self.value
        try:
            yield
        finally:
            ended = self._put(-1)
        self._period.done += 1
        self._period.waited_s += ended - begun
        self._period.slowest_s = max(self._period.slowest_s, ended - begun)
        self._judge(ended)

    def refuse(self) -> None:
        """The server said that it has too much to do; refusals of one moment count once."""
        if not self._settling or self.clock() - self._period.begun >= _PERIOD_S:
            self._go_back(self.value // 2)

    def _put(self, many: int) -> float:
        """So many more are in flight since the time that is returned."""
        now = self.clock()
        self._period.carried_s += self.in_flight * (now - max(self._changed, self._period.begun))
        self.in_flight += many
        self._changed = now
        return now

    def _judge(self, now: float) -> None:
        period = self._period
        if now - period.begun < _PERIOD_S or period.done < self.value:
            return
        self._period = _Period(now)
        if period.slowest_s > _LATE * self.timeout_s:
            self._go_back(self.value // 2)
        elif self._settling:
            self._settling = False
        else:
            self._try(period.throughput(now), full=period.full)

    def _try(self, throughput: float, *, full: bool) -> None:
        if self._to_beat is not None and throughput < _GAIN * self._to_beat[1]:
            self._go_back(self._to_beat[0])
            return
        if self._to_beat is not None:
            self._to_beat, self._failures = None, 0
        if self._content:
            self._content -= 1
        elif full and self.value < MOST * self.servers:
            before = self.value
            self._start_anew(2 * before)
            self._to_beat = (before, throughput)

    def _go_back(self, value: int) -> None:
        self._start_anew(value)
        self._content = _CONTENT * 2**self._failures
        self._failures = min(self._failures + 1, _MOST_DOUBLINGS)

    def _start_anew(self, value: int) -> None:
        places = max(self.servers, 1)
        self.value = min(max(value, LEAST * places), MOST * places)
        self._to_beat, self._settling, self._content = None, True, 0
        self._period = _Period(self.clock())
