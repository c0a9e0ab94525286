"""Gathering: who travels together, and who pays for a bad neighbour."""

import asyncio
from collections.abc import Sequence

import pytest

from medexam.serve.pool.batcher import Batcher
from waiting import soon


class Refused(Exception):
    pass


class Recorder:
    def __init__(self) -> None:
        self.batches: list[tuple[str, tuple[int, ...]]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, key: str, items: Sequence[int]) -> list[int]:
        self.batches.append((key, tuple(items)))
        await self.gate.wait()
        if -1 in items:
            raise Refused
        if -2 in items:
            raise ConnectionError
        return [item * 10 for item in items]

    def gatherer(self, max_items: int = 4, busy_at: int = 100) -> Batcher[str, int, int]:
        return Batcher(self.send, max_items=lambda: max_items, busy_at=lambda: busy_at, split_on=Refused)


async def test_equal_keys_travel_together_and_results_find_their_way_back() -> None:
    recorder = Recorder()
    gatherer = recorder.gatherer()
    results = await asyncio.gather(*(gatherer.submit("ab"[item % 2], item) for item in range(6)))
    assert results == [0, 10, 20, 30, 40, 50]
    assert sorted(recorder.batches) == [("a", (0, 2, 4)), ("b", (1, 3, 5))]


async def test_a_full_batch_leaves_at_once() -> None:
    recorder = Recorder()
    gatherer = recorder.gatherer(max_items=2)
    await asyncio.gather(*(gatherer.submit("a", item) for item in range(5)))
    assert recorder.batches == [("a", (0, 1)), ("a", (2, 3)), ("a", (4,))]


async def test_while_the_server_is_busy_items_wait_for_company() -> None:
    recorder = Recorder()
    recorder.gate.clear()
    gatherer = recorder.gatherer(max_items=8, busy_at=1)
    first = asyncio.create_task(gatherer.submit("a", 0))
    await soon(lambda: recorder.batches)
    others = []
    for item in range(1, 4):
        others.append(asyncio.create_task(gatherer.submit("a", item)))
        await asyncio.sleep(0.01)
    assert recorder.batches == [("a", (0,))]
    recorder.gate.set()
    assert await asyncio.gather(first, *others) == [0, 10, 20, 30]
    assert recorder.batches == [("a", (0,)), ("a", (1, 2, 3))]


async def test_servers_with_room_left_are_given_what_is_there() -> None:
    recorder = Recorder()
    recorder.gate.clear()
    gatherer = recorder.gatherer(max_items=8, busy_at=3)
    asked = []
    for item in range(4):
        asked.append(asyncio.create_task(gatherer.submit("a", item)))
        await soon(lambda: len(recorder.batches) == min(item + 1, 3))  # noqa: B023 - it is awaited here
    await asyncio.sleep(0.03)
    assert recorder.batches == [("a", (0,)), ("a", (1,)), ("a", (2,))]
    recorder.gate.set()
    assert await asyncio.gather(*asked) == [0, 10, 20, 30]


async def test_a_refused_batch_is_halved_until_the_culprit_is_alone() -> None:
    recorder = Recorder()
    gatherer = recorder.gatherer(max_items=4)
    results = await asyncio.gather(*(gatherer.submit("a", item) for item in (1, -1, 2, 3)), return_exceptions=True)
    assert isinstance(results[1], Refused)
    assert [results[0], *results[2:]] == [10, 20, 30]


async def test_a_lost_batch_fails_for_all_and_is_not_sent_again() -> None:
    recorder = Recorder()
    gatherer = recorder.gatherer(max_items=2)
    results = await asyncio.gather(*(gatherer.submit("a", item) for item in (1, -2)), return_exceptions=True)
    assert [type(result) for result in results] == [ConnectionError, ConnectionError]
    assert len(recorder.batches) == 1


async def test_a_caller_that_left_is_not_asked_for() -> None:
    recorder = Recorder()
    gatherer = recorder.gatherer()
    leaving = asyncio.create_task(gatherer.submit("a", 1))
    staying = asyncio.create_task(gatherer.submit("a", 2))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert await staying == 20
    assert recorder.batches == [("a", (2,))]
