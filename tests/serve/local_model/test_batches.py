"""Waves and batches, and the openings that prompts share; no model."""

import threading
from concurrent.futures import Future

import pytest

from medexam.serve.local_model.batches import BatchLimits, BatchThread, PendingRequest, plan_batches
from medexam.serve.local_model.prefixes import PrefixCache, shared_opening
from medexam.serve.logprobs.tokens import common_opening
from waiting import BACKSTOP_S


def plan(jobs, tokens=100, rows=10, group=lambda job: None):
    return plan_batches(jobs, BatchLimits(tokens, rows), size=lambda job: (job, 1), group=group)


@pytest.mark.parametrize(
    ("jobs", "batches"),
    [
        ([], []),
        ([30, 10, 20], [[10, 20, 30]]),
        ([60, 10, 50, 10], [[10, 10], [50], [60]]),
        ([500, 10], [[10], [500]]),
        ([1] * 12, [[1] * 10, [1] * 2]),
    ],
)
def test_batches_are_sorted_and_within_limits(jobs, batches) -> None:
    assert plan(jobs) == batches


def test_groups_are_never_mixed() -> None:
    assert plan([1, 2, 3, 4], group=lambda job: job % 2) == [[1, 3], [2, 4]]


def test_a_worker_answers_from_many_threads() -> None:
    waves: list[int] = []

    def double(wave: list[PendingRequest[int, int]]) -> None:
        waves.append(len(wave))
        for ticket in wave:
            if ticket.claim():
                ticket.future.set_result(2 * ticket.item)

    worker: BatchThread[int, int] = BatchThread(double, wave_size=64, name="test")
    futures: dict[int, Future[int]] = {}

    def send(start: int) -> None:
        for item in range(start, start + 50):
            futures[item] = worker.submit(item)

    threads = [threading.Thread(target=send, args=(start,)) for start in (0, 50, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    worker.close()
    assert {item: future.result() for item, future in futures.items()} == {item: 2 * item for item in range(150)}
    assert sum(waves) == 150
    with pytest.raises(RuntimeError, match="closed"):
        worker.submit(1)
    worker.close()


def test_a_failing_handler_fails_its_wave_and_the_worker_lives_on() -> None:
    def handle(wave: list[PendingRequest[int, int]]) -> None:
        if any(ticket.item < 0 for ticket in wave):
            raise ValueError("negative")
        for ticket in wave:
            ticket.future.set_result(ticket.item)

    worker: BatchThread[int, int] = BatchThread(handle, wave_size=1, name="test")
    with pytest.raises(ValueError, match="negative"):
        worker.submit(-1).result(timeout=BACKSTOP_S)
    assert worker.submit(1).result(timeout=BACKSTOP_S) == 1
    worker.close()


def test_a_cancelled_ticket_is_not_claimed() -> None:
    ticket: PendingRequest[int, int] = PendingRequest(1, Future())
    ticket.future.cancel()
    assert not ticket.claim()
    assert PendingRequest(1, Future()).claim()


@pytest.mark.parametrize(
    ("rows", "common", "shared"),
    [
        ([[1, 2, 3], [1, 2, 4]], [1, 2], [1, 2]),
        ([[1, 2], [1, 2, 4]], [1, 2], [1]),
        ([[1, 2, 3]], [1, 2, 3], [1, 2]),
        ([[1], [2]], [], []),
        ([[3, 1], [3, 2], [3, 1, 5]], [3], [3]),
    ],
)
def test_openings(rows, common, shared) -> None:
    assert common_opening(rows) == common
    assert shared_opening(rows) == shared


class Width:
    """Stands for a tensor: remembers how many tokens it was cut to."""

    def __getitem__(self, cut) -> int:
        return cut[1].stop


def test_prefixes_are_computed_once_and_cut_to_fit() -> None:
    computed: list[int] = []

    def compute(tokens):
        computed.append(len(tokens))
        return [(Width(), Width())]

    cache = PrefixCache(compute, size=2)
    opening = list(range(50))
    assert cache.share([[*opening[:10], 1], [*opening[:10], 2]]) == (0, [])  # too short to pay
    assert cache.share([[*opening, 98]]) == (0, [])  # a single row shares with nobody yet
    assert cache.share([[*opening, 98], [*opening, 99]]) == (50, [(50, 50)])
    assert cache.share([[*opening, 97]]) == (50, [(50, 50)])
    assert cache.share([[*opening[:45], 1], [*opening[:45], 2]]) == (45, [(45, 45)])
    assert cache.share([opening[:30], opening[:30]]) == (29, [(29, 29)])
    assert computed == [50]
    other = [-token - 1 for token in range(40)]
    assert cache.share([[*other, 1], [*other, 2]])[0] == 40
    longer = [*opening, *range(100, 150)]
    assert cache.share([[*longer, 1], [*longer, 2]])[0] == 100
    assert computed == [50, 40, 100]
    assert cache.share([[*opening, 1], [*opening, 2]]) == (50, [(50, 50)])  # the longer one serves the shorter
    assert computed == [50, 40, 100]
