"""Dynamic batches: requests from any thread or event loop in, batches for one worker thread out.

The worker takes everything that waits, hands it over as one wave, and only then looks again: with a few hundred
requests in flight each wave is large enough to be cut into batches of equal lengths, and none waits for ever. This
module knows threads, futures and sizes; what a request says and how it is answered is the handler's affair.
"""

import queue
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

_QUIET_S = 0.004
"""A wave closes when nothing has arrived for this long: callers woken by one batch need it to send their next."""
_PATIENCE_S = 0.03
"""A wave closes at the latest after this time, however steadily requests trickle in."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class PendingRequest(Generic[T, R]):
    """One request that waits, and where its result goes."""

    item: T
    future: "Future[R]"

    def claim(self) -> bool:
        """Start on it; False where its caller has given up."""
        return not self.future.done() and self.future.set_running_or_notify_cancel()


class BatchThread(Generic[T, R]):
    """A thread that answers requests wave by wave with `handle`, which settles the futures of the wave."""

    def __init__(self, handle: Callable[[list[PendingRequest[T, R]]], None], *, full: int, name: str):
        self._handle = handle
        self._full = full
        self._queue: queue.SimpleQueue[PendingRequest[T, R] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, item: T) -> "Future[R]":
        """Queue a request; raises `RuntimeError` after `close`."""
        ticket: PendingRequest[T, R] = PendingRequest(item, Future())
        with self._lock:
            if self._closed:
                raise RuntimeError("the worker is closed")
            self._queue.put(ticket)
        return ticket.future

    def close(self) -> None:
        """Answer what waits, then end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            wave, last = self._gather(first)
            try:
                self._handle(wave)
            except BaseException as error:  # a dead worker would leave its callers waiting for ever
                for ticket in wave:
                    if not ticket.future.done():
                        ticket.future.set_exception(error)
            # Kept, they would hold requests and results alive while the thread waits for more.
            del first, wave
            if last:
                return

    def _gather(self, first: PendingRequest[T, R]) -> tuple[list[PendingRequest[T, R]], bool]:
        """A wave, and whether it is the last one."""
        wave = [first]
        latest = time.monotonic() + _PATIENCE_S
        while True:
            patience = min(_QUIET_S, latest - time.monotonic()) if len(wave) < self._full else 0
            try:
                ticket = self._queue.get(timeout=patience) if patience > 0 else self._queue.get_nowait()
            except queue.Empty:
                return wave, False
            if ticket is None:
                return wave, True
            wave.append(ticket)


@dataclass(frozen=True)
class BatchLimits:
    """How large a batch may be."""

    tokens: int
    """Rows times the tokens of the longest row, padding included."""
    rows: int


def plan_batches(
    jobs: Sequence[T],
    limits: BatchLimits,
    *,
    size: Callable[[T], tuple[int, int]],
    group: Callable[[T], Hashable],
) -> list[list[T]]:
    """Cut jobs into batches of one group each, neighbours in length, none over the limits unless it is one job.

    `size` tells a job's tokens a row and its rows. Groups come in the order in which they first appear.
    """
    groups: dict[Hashable, list[T]] = {}
    for job in jobs:
        groups.setdefault(group(job), []).append(job)
    batches: list[list[T]] = []
    for members in groups.values():
        batch: list[T] = []
        rows = 0
        for job in sorted(members, key=lambda member: size(member)[0]):
            tokens, more = size(job)
            if batch and (rows + more > limits.rows or (rows + more) * tokens > limits.tokens):
                batches.append(batch)
                batch, rows = [], 0
            batch.append(job)
            rows += more
        batches.append(batch)
    return batches
