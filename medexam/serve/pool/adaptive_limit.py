"""How many requests are in flight at once, adapted to what the servers take.

The limit is doubled on trial: kept if the throughput rose, taken back if it did not. It is halved when a server refuses
(HTTP 429 or 503), or answers so late that requests would soon time out. This module knows times and counts, no servers.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from medexam.serve.network.connections import MOST_CONNECTIONS

MINIMUM = 16
MAXIMUM = MOST_CONNECTIONS
INITIAL = 128
"""Enough to see at once what a server does with many, and little to lose if it refuses."""

_GAIN = 1.08
"""A trial must bring this times the throughput before it, or it is taken back."""
_PERIOD_S = 0.25
"""The shortest time over which a throughput is measured."""
_PAUSE_PERIODS = 16
"""Periods without a trial after one that failed, or after a refusal; doubled with each further one in a row."""
_MOST_DOUBLINGS = 6
_LATE = 0.25
"""Requests that take more than this share of their time limit mean that too many are in flight."""


@dataclass
class _Period:
    start: float
    answers: int = 0
    waited_s: float = 0.0
    """The seconds that the answered requests took, summed."""
    request_s: float = 0.0
    """Requests in flight, integrated over time."""
    slowest_s: float = 0.0
    was_full: bool = False
    """Whether the limit was ever reached."""

    def throughput(self, now: float) -> float:
        """Compute requests a second, by Little's law: counting answers would depend on where batches happen to end."""
        return self.request_s / (now - self.start) / (self.waited_s / self.answers)


@dataclass
class AdaptiveLimit:
    """A limit of requests in flight that adapts itself."""

    timeout_s: float
    """Seconds that one request may take."""
    servers: int = 1
    """`MINIMUM`, `MAXIMUM` and `initial` are for each."""
    initial: int = INITIAL
    sharers: int = 1
    """Processes that ask the same servers, each with a limit of its own: `MINIMUM` and `MAXIMUM` are divided among
    them. `initial` is not, unless it is over that share: smaller batches would cost each of them more."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._least, self._most = (max(1, number // self.sharers) for number in (MINIMUM, MAXIMUM))
        self._first = min(self.initial, self._most)
        self.value = self._first * self.servers
        """How many may be in flight now."""
        self.in_flight = 0
        self._before_trial: tuple[int, float] | None = None
        """While a trial runs: the limit and the throughput before it."""
        self._settling = False
        """Whether this period still holds requests from before the last change, so that it says nothing of it."""
        self._setbacks = 0
        """Failed trials and refusals in a row."""
        self._pause = 0
        """Periods to wait before the next trial."""
        self._period = _Period(self.clock())
        self._changed_at = self._period.start

    def add_server(self) -> None:
        """Raise the limit for one more server."""
        self.servers += 1
        self.value += self._first
        self._change_to(self.value)

    def remove_server(self) -> None:
        """Lower the limit by one server's share; without servers, as many requests may wait as for one."""
        share = self.value // max(self.servers, 1)
        self.servers = max(self.servers - 1, 0)
        self._change_to(share * self.servers)

    @contextmanager
    def track(self) -> Iterator[None]:
        """Count a request as in flight; it counts as answered unless an exception ends the block."""
        start = self._add(1)
        self._period.was_full |= self.in_flight >= self.value
        try:
            yield
        finally:
            end = self._add(-1)
        # Not in `finally`: a request that failed says nothing of how long answers take.
        self._period.answers += 1
        self._period.waited_s += end - start
        self._period.slowest_s = max(self._period.slowest_s, end - start)
        self._judge(end)

    def record_refusal(self) -> None:
        """Halve the limit because a server has too much to do."""
        # A server that is full refuses many requests at once; halving for each would go down to the minimum.
        if not self._settling or self.clock() - self._period.start >= _PERIOD_S:
            self._set_back(self.value // 2)

    def _add(self, change: int) -> float:
        """Change the number in flight; returns the time."""
        now = self.clock()
        # Only the time within this period: what lies before its begin was counted in the last one.
        self._period.request_s += self.in_flight * (now - max(self._changed_at, self._period.start))
        self.in_flight += change
        self._changed_at = now
        return now

    def _judge(self, now: float) -> None:
        period = self._period
        # Fewer answers than the limit are not one round yet: their times would be those of the fastest alone.
        if now - period.start < _PERIOD_S or period.answers < self.value:
            return
        self._period = _Period(now)
        if period.slowest_s > _LATE * self.timeout_s:
            self._set_back(self.value // 2)
        elif self._settling:
            self._settling = False
        else:
            self._compare(period.throughput(now), was_full=period.was_full)

    def _compare(self, throughput: float, *, was_full: bool) -> None:
        """End a trial that runs, or begin one if it is time and the limit was reached."""
        if self._before_trial is not None and throughput < _GAIN * self._before_trial[1]:
            self._set_back(self._before_trial[0])
            return
        if self._before_trial is not None:
            self._before_trial, self._setbacks = None, 0
        if self._pause:
            self._pause -= 1
        # A limit that was never reached did not hold the throughput down; a higher one would change nothing.
        elif was_full and self.value < self._most * self.servers:
            old_value = self.value
            self._change_to(2 * old_value)
            self._before_trial = (old_value, throughput)

    def _set_back(self, value: int) -> None:
        self._change_to(value)
        # A trial at servers that are full costs throughput, so each setback in a row doubles the time to the next one.
        self._pause = _PAUSE_PERIODS * 2**self._setbacks
        self._setbacks = min(self._setbacks + 1, _MOST_DOUBLINGS)

    def _change_to(self, value: int) -> None:
        servers = max(self.servers, 1)
        self.value = min(max(value, self._least * servers), self._most * servers)
        self._before_trial, self._settling, self._pause = None, True, 0
        self._period = _Period(self.clock())
