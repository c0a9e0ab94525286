"""How much is given to a server at once, against servers that are simulated second by second."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from medexam.serve.pool.adaptive_limit import INITIAL, MAXIMUM, MINIMUM, AdaptiveLimit


@dataclass
class Simulated:
    """A server that works on `slots` prompts at once, each for `service_s`, and refuses beyond `room`."""

    slots: int
    service_s: float = 1.0
    room: int = 100_000
    timeout_s: float = 600.0
    now: float = 0.0
    answered: int = 0
    refused: int = 0
    seen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.load = AdaptiveLimit(self.timeout_s, clock=lambda: self.now)
        self._ends: list[tuple[float, int, Any]] = []
        self._free = [0.0] * self.slots

    def run(self, seconds: float) -> None:
        end, place = self.now + seconds, 0
        while self.now < end:
            while self.load.in_flight < self.load.value:
                track = self.load.track()
                track.__enter__()
                if self.load.in_flight > self.room:
                    track.__exit__(RuntimeError, RuntimeError(), None)
                    self.refused += 1
                    self.load.record_refusal()
                    break
                begun = max(heapq.heappop(self._free), self.now)
                heapq.heappush(self._free, begun + self.service_s)
                heapq.heappush(self._ends, (begun + self.service_s, place, track))
                place += 1
            self.now, _, track = heapq.heappop(self._ends)
            track.__exit__(None, None, None)
            self.answered += 1
            self.seen.append(self.load.value)


@pytest.mark.parametrize("slots", [100, 256, 900])
def test_a_server_with_many_places_is_given_enough_to_fill_them(slots: int) -> None:
    server = Simulated(slots)
    server.run(60)
    before = server.answered
    server.run(60)
    assert slots <= server.load.value <= min(4 * slots, MAXIMUM)
    assert server.answered - before > 0.97 * 60 * slots


def test_more_is_taken_back_where_it_brings_nothing() -> None:
    server = Simulated(slots=20)
    server.run(400)
    assert server.load.value in (INITIAL, 2 * INITIAL)
    assert server.seen.count(INITIAL) > 0.8 * len(server.seen)


def test_a_server_that_refuses_is_given_less_and_seldom_refuses_again() -> None:
    server = Simulated(slots=64, room=50)
    server.run(300)
    assert MINIMUM <= server.load.value <= 50
    assert server.refused < 0.02 * server.answered


def test_refusals_of_one_moment_count_once() -> None:
    load = AdaptiveLimit(60.0, clock=lambda: 0.0)
    for _ in range(100):
        load.record_refusal()
    assert load.value == INITIAL // 2


def test_it_never_falls_below_the_least() -> None:
    server = Simulated(slots=4, room=8)
    server.load.value = MINIMUM
    for second in range(100):
        server.now = float(second)
        server.load.record_refusal()
    assert server.load.value == MINIMUM


def test_a_server_that_answers_late_is_given_less() -> None:
    server = Simulated(slots=10, service_s=1.0, timeout_s=20.0)
    server.run(120)
    assert server.load.value < INITIAL


def test_servers_that_join_bring_room_of_their_own() -> None:
    load = AdaptiveLimit(60.0, servers=1)
    load.add_server()
    assert load.value == 2 * INITIAL


def test_processes_that_ask_the_same_servers_divide_the_least_and_the_most() -> None:
    of_four, of_sixteen = (AdaptiveLimit(60.0, sharers=number, clock=lambda: 0.0) for number in (4, 16))
    assert (of_four.value, of_sixteen.value) == (INITIAL, MAXIMUM // 16)
    of_sixteen.add_server()
    assert of_sixteen.value == 2 * MAXIMUM // 16
    for second in range(100):
        of_four.clock = lambda second=second: float(second)
        of_four.record_refusal()
    assert 4 * of_four.value == MINIMUM


def test_what_failed_is_not_in_flight_any_more_and_counts_as_no_answer() -> None:
    load = AdaptiveLimit(60.0)
    track = load.track()
    track.__enter__()
    assert load.in_flight == 1
    assert not track.__exit__(RuntimeError, RuntimeError(), None)
    assert load.in_flight == 0


def test_a_client_that_is_slower_than_the_server_raises_nothing() -> None:
    time = 0.0
    clock: Callable[[], float] = lambda: time  # noqa: E731
    load = AdaptiveLimit(60.0, clock=clock)
    for _ in range(5000):
        with load.track():
            time += 0.01
    assert load.value == INITIAL
