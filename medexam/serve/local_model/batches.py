"""Dynamic batches: requests from any thread or event loop, answered in batches by one thread.

The thread takes all pending requests as one wave, answers them, and only then looks again. With a few hundred requests
in flight each wave is large enough to be cut into batches of similar lengths, and none waits for ever. This module
knows threads, futures and sizes; the handler knows what a request says and how it is answered.
"""

import queue
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from types import MethodType
from typing import Generic, TypeVar
from weakref import WeakMethod, finalize

from medexam.serve.waits import begin_wait

_QUIET_S = 0.004
"""A wave closes when nothing has arrived for this long; callers need it to send their next request after a batch."""
_LONGEST_WAIT_S = 0.03
"""A wave closes at the latest after this time, however steadily requests arrive."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class PendingRequest(Generic[T, R]):
    """One request, and where its result goes."""

    item: T
    future: "Future[R]"
    end_wait: Callable[[], None] = field(default_factory=begin_wait)

    def claim(self) -> bool:
        """Make it uncancellable; False if its caller has given up."""
        claimed = not self.future.done() and self.future.set_running_or_notify_cancel()
        self.end_wait()
        return claimed


Handle = Callable[[list[PendingRequest[T, R]]], None]
"""Answers a wave: it settles the future of each request."""


class BatchThread(Generic[T, R]):
    """A thread that answers requests wave by wave with `handle`, which settles the futures of the wave.

    The owner of `handle`, if it is a method, lives on only for its users and for requests that are pending. The
    thread ends with it, or by `close`.
    """

    def __init__(self, handle: Handle[T, R], *, wave_size: int, name: str):
        # A strong reference would keep the owner alive for as long as the thread waits, and the thread waits for ever.
        self._handle = WeakMethod(handle) if isinstance(handle, MethodType) else lambda: handle
        self._wave_size = wave_size
        self._queue: queue.SimpleQueue[tuple[PendingRequest[T, R], Handle[T, R]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._wave: list[PendingRequest[T, R]] = []
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        if isinstance(handle, MethodType):
            # Without the lock, which the thread that collects garbage may hold: nobody is left to queue a request.
            finalize(handle.__self__, self._queue.put, None)

    def submit(self, item: T) -> "Future[R]":
        """Queue a request; raises `RuntimeError` after `close`."""
        pending: PendingRequest[T, R] = PendingRequest(item, Future())
        handle = self._handle()
        # Under the lock nothing is queued behind the end mark that `close` puts: it would never be answered.
        with self._lock:
            if self._closed or handle is None:
                raise RuntimeError("the thread is closed")
            self._queue.put((pending, handle))
        return pending.future

    def take_waiting(self) -> list[PendingRequest[T, R]]:
        """Take the requests that came since the wave did, for a handler that can take them into it; none if there are
        none.
        """
        requests: list[PendingRequest[T, R]] = []
        with suppress(queue.Empty):
            while (entry := self._queue.get_nowait()) is not None:
                requests.append(entry[0])
            # The mark of the end is for the thread itself, and nothing comes behind it.
            self._queue.put(None)
        self._wave += requests
        return requests

    def close(self) -> None:
        """Answer what is pending, then end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (entry := self._queue.get()) is not None:
            request, handle = entry
            wave, is_last = self._collect(request)
            self._wave = list(wave)
            try:
                handle(wave)
            except BaseException as error:  # a dead thread would leave its callers waiting for ever
                for pending in self._wave:
                    if not pending.future.done():
                        pending.future.set_exception(error)
            # Otherwise requests, results and the owner would stay in memory while the thread waits for more.
            self._wave = []
            del entry, request, handle, wave
            if is_last:
                return

    def _collect(self, request: PendingRequest[T, R]) -> tuple[list[PendingRequest[T, R]], bool]:
        """Collect a wave, and whether it is the last one."""
        wave = [request]
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while True:
            wait_s = min(_QUIET_S, deadline - time.monotonic()) if len(wave) < self._wave_size else 0
            try:
                entry = self._queue.get(timeout=wait_s) if wait_s > 0 else self._queue.get_nowait()
            except queue.Empty:
                return wave, False
            if entry is None:
                return wave, True
            wave.append(entry[0])


@dataclass(frozen=True)
class BatchLimits:
    """How large a batch may be."""

    tokens: int
    """Rows times the tokens of the longest row, padding included."""
    rows: int


def plan_batches(
    jobs: Sequence[T], limits: BatchLimits, *, size: Callable[[T], tuple[int, int]], group: Callable[[T], Hashable]
) -> list[list[T]]:
    """Cut jobs into batches of one group each, neighbours in length, none over the limits unless it is one job.

    `size` returns a job's tokens a row and its rows. Groups come in the order in which they first appear.
    """
    groups: dict[Hashable, list[T]] = {}
    for job in jobs:
        groups.setdefault(group(job), []).append(job)
    batches: list[list[T]] = []
    for members in groups.values():
        batch: list[T] = []
        rows = 0
        for job in sorted(members, key=lambda member: size(member)[0]):
            tokens, row_count = size(job)
            if batch and (rows + row_count > limits.rows or (rows + row_count) * tokens > limits.tokens):
                batches.append(batch)
                batch, rows = [], 0
            batch.append(job)
            rows += row_count
        batches.append(batch)
    return batches
