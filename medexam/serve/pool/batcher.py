"""Many callers, few requests: calls that arrive together and want the same travel as one list of prompts.

A request costs the client more than a prompt does, so bulk runs are several times cheaper when prompts share one.
While the servers have work enough, waiting costs nothing and batches grow; when they are about to run dry, what is
there goes, after a moment that is short beside what a batch takes.
This module knows keys, items and batches; what a batch means is its `send` function's business.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")
Result = TypeVar("Result")

_PATIENCE = 0.05
"""The share of a batch's own time that an item waits for company."""
_FIRST_S = 0.01
"""What an item waits before a batch's time is known."""
_SHORTEST_S = 0.001
_LONGEST_S = 0.05
_NEWS = 0.2
"""The weight of the latest batch in the mean of their times."""


class Batcher(Generic[Key, Item, Result]):
    """Groups items by key and sends each group as one batch. It belongs to the loop it is used on."""

    def __init__(
        self,
        send: Callable[[Key, Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        cap: Callable[[], int],
        enough: Callable[[], int],
        divisible: type[Exception],
    ) -> None:
        """`send` returns one result per item, in order.

        `cap` tells the most items of a batch and `enough` the number of items in flight that keep the servers busy;
        both may change. An item waits a moment for company, and longer while `enough` are under way. A batch that
        fails with `divisible` is halved until the culprit stands alone, so that one bad item does not spoil its
        neighbours.
        """
        self._send = send
        self._cap = cap
        self._enough = enough
        self._batch_s = 0.0
        self._divisible = divisible
        self._waiting: dict[Key, list[tuple[Item, asyncio.Future[Result]]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._batches: set[asyncio.Task[None]] = set()
        self._under_way = 0

    async def submit(self, key: Key, item: Item) -> Result:
        """The result of this item; items with equal keys may travel together."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        group = self._waiting.setdefault(key, [])
        group.append((item, future))
        if len(group) >= self._cap():
            self._dispatch(key)
        else:
            self._wait()
        return await future

    def _wait(self) -> None:
        if self._timer is None and self._waiting and self._under_way < self._enough():
            window_s = min(max(_PATIENCE * self._batch_s, _SHORTEST_S), _LONGEST_S) if self._batch_s else _FIRST_S
            self._timer = asyncio.get_running_loop().call_later(window_s, self._window_over)

    def _window_over(self) -> None:
        self._timer = None
        for key in list(self._waiting):
            if self._under_way < self._enough():
                self._dispatch(key)

    def _dispatch(self, key: Key) -> None:
        group = [(item, future) for item, future in self._waiting.pop(key) if not future.done()]
        if not group:
            return
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._carry(key, group))
        self._batches.add(task)
        self._under_way += len(group)
        task.add_done_callback(partial(self._arrived, loop.time(), len(group)))

    def _arrived(self, sent: float, items: int, task: asyncio.Task[None]) -> None:
        took = asyncio.get_running_loop().time() - sent
        self._batch_s += (took - self._batch_s) * _NEWS if self._batch_s else took
        self._batches.discard(task)
        self._under_way -= items
        self._wait()

    async def _carry(self, key: Key, group: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._send(key, [item for item, _ in group])
            if len(results) != len(group):
                raise RuntimeError(f"{len(group)} items were sent and {len(results)} results came back")
        except self._divisible as error:
            if len(group) == 1:
                _fail(group, error)
                return
            middle = len(group) // 2
            await asyncio.gather(self._carry(key, group[:middle]), self._carry(key, group[middle:]))
        except asyncio.CancelledError:
            for _, future in group:
                future.cancel()
            raise
        except Exception as error:
            _fail(group, error)
        else:
            for (_, future), result in zip(group, results, strict=True):
                if not future.done():
                    future.set_result(result)


def _fail(group: Sequence[tuple[object, asyncio.Future[Result]]], error: Exception) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(error)
