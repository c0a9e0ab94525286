"""What a request waited before it was sent, told apart from its answering."""

import asyncio
import time

import pytest

from medexam.serve.local_model.batches import BatchThread
from medexam.serve.pool.batcher import Batcher
from medexam.serve.waits import covered_s, recorded
from waiting import soon


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [([], 0.0), ([(1.0, 2.0)], 1.0), ([(1.0, 3.0), (2.0, 4.0)], 3.0), ([(5.0, 6.0), (1.0, 2.0)], 2.0)],
)
def test_waits_at_the_same_time_count_once(spans, seconds) -> None:
    assert covered_s(spans) == pytest.approx(seconds)


def test_a_prompt_that_waits_for_the_batch_before_it_says_how_long() -> None:
    answered = asyncio.Event()

    async def send(key, items):
        await answered.wait()
        await asyncio.sleep(0.2)
        return items

    async def ask(batcher, item):
        begun = time.monotonic()
        with recorded() as waits:
            await batcher.submit("key", item)
        return covered_s(waits), time.monotonic() - begun

    async def both():
        batcher = Batcher(send, max_items=lambda: 1, busy_at=lambda: 1, split_on=ValueError)
        first = asyncio.create_task(ask(batcher, "first"))
        await asyncio.sleep(0.05)
        batcher._max_items = lambda: 2
        second = asyncio.create_task(ask(batcher, "second"))
        await soon(lambda: batcher._pending, "the second prompt's wait")
        await asyncio.sleep(0.2)
        answered.set()
        return await first, await second

    (first_wait, first_took), (second_wait, second_took) = asyncio.run(both())
    assert first_wait <= first_took - 0.19
    assert 0.19 <= second_wait <= second_took - 0.19


def test_a_wave_in_this_process_says_how_long_its_requests_waited() -> None:
    claimed: list[float] = []

    def handle(wave):
        for pending in wave:
            assert pending.claim()
            claimed.append(time.monotonic())
            time.sleep(0.1)
            pending.future.set_result(pending.item)

    thread = BatchThread(handle, wave_size=2, name="waits")
    begun = time.monotonic()
    with recorded() as waits:
        futures = [thread.submit(number) for number in range(2)]
        assert [future.result() for future in futures] == [0, 1]
    thread.close()
    assert len(waits) == 2
    assert 0.1 <= covered_s(waits) <= claimed[-1] - begun
