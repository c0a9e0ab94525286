"""The simulated cluster on cases whose answer is known in closed form."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from simulated.client import Processor
from simulated.cluster import Event, Found, Setting, simulate
from simulated.server import SimulatedServer, State
from simulated.virtual_time import run_virtually

SECONDS = 20.0


def answers_a_second(server: SimulatedServer, callers: int) -> float:
    """Of a server with as many callers, each of which asks again as soon as it has its answer."""

    async def ask() -> None:
        while True:
            await server.serve(1)

    async def run() -> float:
        asking = [asyncio.create_task(ask()) for _ in range(callers)]
        await asyncio.sleep(2 * SECONDS)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        return server.count(SECONDS, 2 * SECONDS) / SECONDS

    return run_virtually(run, seed=8)


@pytest.mark.parametrize(
    ("callers", "slots", "expected"),
    [
        pytest.param(4, 256, 4 / 0.05, id="latency"),
        pytest.param(64, 10, 10 / 0.05, id="slots"),
        pytest.param(64, 256, 600.0, id="rate"),
    ],
)
def test_throughput_is_that_of_littles_law(callers: int, slots: int, expected: float) -> None:
    server = SimulatedServer("http://one:8000/v1", rate=600.0, latency_s=0.05, slots=slots)
    assert answers_a_second(server, callers) == pytest.approx(expected, rel=0.005)


def test_the_wait_is_that_of_a_queue_with_random_arrivals_and_constant_service() -> None:
    rate, load = 100.0, 0.6
    server = SimulatedServer("http://one:8000/v1", rate=rate, latency_s=1 / rate, slots=100_000)
    waits: list[float] = []

    async def ask() -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await server.serve(1)
        waits.append(loop.time() - begun - 1 / rate)

    async def run() -> None:
        asking = []
        for _ in range(20_000):
            await asyncio.sleep(random.expovariate(load * rate))
            asking.append(asyncio.create_task(ask()))
        await asyncio.gather(*asking)

    run_virtually(run, seed=8)
    # Pollaczek and Khinchine: the mean wait of M/D/1.
    assert sum(waits) / len(waits) == pytest.approx(load / (2 * rate * (1 - load)), rel=0.06)


def test_a_slower_server_begins_again_and_a_dead_one_loses_what_it_has() -> None:
    server = SimulatedServer("http://one:8000/v1", rate=10.0, latency_s=0.1, slots=1)

    async def run() -> float:
        loop = asyncio.get_running_loop()
        asked = asyncio.create_task(server.serve(4))
        await asyncio.sleep(0.2)
        server.slow_down(0.5)
        await asked
        took = loop.time()
        lost = asyncio.create_task(server.serve(1))
        await asyncio.sleep(0.01)
        server.change(State.DEAD)
        with pytest.raises(Exception, match="connection reset"):
            await lost
        return took

    assert run_virtually(run, seed=8) == pytest.approx(0.2 + 4 * 0.2)


def test_a_processor_does_one_thing_after_the_other() -> None:
    async def run() -> list[float]:
        processor, loop = Processor(), asyncio.get_running_loop()

        async def work(seconds: float) -> float:
            await processor.work(seconds)
            return loop.time()

        return await asyncio.gather(work(1.0), work(0.0), work(0.5))

    assert run_virtually(run, seed=8) == pytest.approx([1.0, 1.0, 1.5])


def test_a_simulation_without_anything_to_wait_for_says_so() -> None:
    with pytest.raises(RuntimeError, match="stuck"):
        run_virtually(lambda: asyncio.Event().wait(), seed=8)


def found(tmp_path: Path, setting: Setting) -> Found:
    tmp_path.mkdir(exist_ok=True)
    return simulate(setting, tmp_path)


@pytest.mark.nightly
def test_a_worker_asks_no_more_than_its_processor_allows(tmp_path: Path) -> None:
    one = found(tmp_path, Setting(servers=4, workers=1, questions=4000, cost_ms=1.0))
    assert one.answered == one.asked == 4000
    assert one.took_s == pytest.approx(4.0, rel=0.05)
    assert one.client_busy > 0.95


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    setting = Setting(servers=2, workers=2, questions=2000, events=(Event(0.8, 1, State.DEAD),))
    runs = [replace(found(tmp_path / name, setting), real_s=0.0) for name in ("first", "second")]
    assert runs[0] == runs[1]
    assert (runs[0].answered, runs[0].failed) == (2000, 0)
