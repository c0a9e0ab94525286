"""Many callers, few requests: items that arrive together with the same key are sent as one batch.

A request costs the client more than a prompt does, so bulk runs are several times cheaper when prompts share one.
While the servers are busy, waiting costs nothing and batches grow. When the servers are about to run out of work, what
is pending is sent, after a moment that is short compared with a batch's own time.
This module knows keys, items and batches; what a batch means is its `send` function's business.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from medexam.serve.waits import begin_wait

Key = TypeVar("Key")
Item = TypeVar("Item")
Result = TypeVar("Result")

_WAIT_SHARE = 0.05
"""The share of a batch's own time that an item waits for others."""
_FIRST_WAIT_S = 0.01
"""What an item waits before a batch's time is known."""
_SHORTEST_WAIT_S = 0.001
_LONGEST_WAIT_S = 0.05
_SMOOTHING = 0.2
"""The weight of the latest batch in the mean of their times."""


class Batcher(Generic[Key, Item, Result]):
    """Groups items by key and sends each group as one batch. It belongs to the event loop that it is used on."""

    def __init__(
        self,
        send: Callable[[Key, Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        max_items: Callable[[], int],
        busy_at: Callable[[], int],
        split_on: type[Exception],
    ) -> None:
        """Set up the batches; `send` returns one result per item, in order.

        `max_items` returns the most items of a batch, and `busy_at` the number of items in flight that keep the servers
        busy; both may change. A batch that fails with `split_on` is halved until the culprit is alone, so that one bad
        item does not spoil the others.
        """
        self._send = send
        self._max_items = max_items
        self._busy_at = busy_at
        self._split_on = split_on
        self._mean_s = 0.0
        """What a batch takes on average; 0 before the first."""
        self._pending: dict[Key, list[tuple[Item, asyncio.Future[Result], Callable[[], None]]]] = {}
        """What ends the wait of an item stands behind its future."""
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        """The event loop itself keeps only weak references to tasks: without these a batch could vanish."""
        self._in_flight = 0

    async def submit(self, key: Key, item: Item) -> Result:
        """Submit an item and return its result; items with equal keys may share a batch."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        group = self._pending.setdefault(key, [])
        group.append((item, future, begin_wait()))
        if len(group) >= self._max_items():
            self._dispatch(key)
        else:
            self._start_timer()
        return await future

    def _start_timer(self) -> None:
        # Without a timer while the servers are busy, pending items wait for `_finish`, which calls this again.
        if self._timer is None and self._pending and self._in_flight < self._busy_at():
            wait_s = min(max(_WAIT_SHARE * self._mean_s, _SHORTEST_WAIT_S), _LONGEST_WAIT_S)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(wait_s if self._mean_s else _FIRST_WAIT_S, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        for key in list(self._pending):
            # Asked for each key: what the first one sends may keep the servers busy, and the others still grow.
            if self._in_flight < self._busy_at():
                self._dispatch(key)

    def _dispatch(self, key: Key) -> None:
        # A caller that was cancelled meanwhile has cancelled its future; its item would be computed for nobody.
        group = []
        for item, future, end_wait in self._pending.pop(key):
            if not future.done():
                end_wait()
                group.append((item, future))
        if not group:
            return
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._send_group(key, group))
        self._tasks.add(task)
        self._in_flight += len(group)
        task.add_done_callback(partial(self._finish, loop.time(), len(group)))

    def _finish(self, start: float, items: int, task: asyncio.Task[None]) -> None:
        took = asyncio.get_running_loop().time() - start
        self._mean_s += (took - self._mean_s) * _SMOOTHING if self._mean_s else took
        self._tasks.discard(task)
        self._in_flight -= items
        self._start_timer()

    async def _send_group(self, key: Key, group: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._send(key, [item for item, _ in group])
            if len(results) != len(group):
                raise RuntimeError(f"{len(group)} items were sent and {len(results)} results came back")
        except self._split_on as error:
            if len(group) == 1:
                _fail(group, error)
                return
            # The error does not say whose prompt it was; halving finds it with few requests more.
            middle = len(group) // 2
            await asyncio.gather(self._send_group(key, group[:middle]), self._send_group(key, group[middle:]))
        except asyncio.CancelledError:
            # The loop is closing: callers that waited on would never be woken.
            for _, future in group:
                future.cancel()
            raise
        except Exception as error:
            _fail(group, error)
        else:
            for (_, future), result in zip(group, results, strict=True):
                # One that was cancelled while its batch was sent is done already, and would refuse a result.
                if not future.done():
                    future.set_result(result)


def _fail(group: Sequence[tuple[object, asyncio.Future[Result]]], error: Exception) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(error)
