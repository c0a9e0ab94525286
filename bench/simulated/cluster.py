"""Whole simulated clusters: servers in a registry, workers that ask them, and what happens to servers meanwhile."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulated.client import MODEL, Processor, Program, open_engine, simulated_wire
from simulated.server import SimulatedServer, State
from simulated.virtual_time import run_virtually

from medexam.experiments import Spending
from medexam.experiments.run.scheduler import Scheduler, Work
from medexam.experiments.store.prediction_lines import open_log
from medexam.experiments.store.shards import hold_shard
from medexam.gc_pause import gc_seldom
from medexam.serve import TIMING, RegisteredServer, Registry
from medexam.serve.discovery.finder import ServerFinder
from medexam.specs import ModelSpec

DIGEST = "simulated"


@dataclass(frozen=True)
class Event:
    """Something that happens to a server."""

    at_s: float
    server: int
    """Its place."""
    state: State | None = None
    """None: as before."""
    rate: float = 1.0
    """The share of its rate that it works at from now on."""


@dataclass(frozen=True)
class Setting:
    """A cluster and the work that it is given."""

    servers: int
    workers: int
    questions: int
    rate: float = 600.0
    """Questions a second of one server."""
    latency_s: float = 0.05
    slots: int = 256
    cost_ms: float = 0.35
    """Processor time of a worker for each question, half before it is sent and half when the reply is read."""
    events: tuple[Event, ...] = ()
    seed: int = 8

    @property
    def possible(self) -> float:
        """Questions a second that servers and workers' processors allow."""
        asked = 1000 * self.workers / self.cost_ms if self.cost_ms else float("inf")
        return min(self.servers * self.rate, asked)


@dataclass(frozen=True)
class Found:
    """What came out."""

    took_s: float
    """From the first question to the last answer."""
    all_begun_s: float
    """When the last question was begun: from then on the servers run dry."""
    answered: int
    failed: int
    asked: int
    """Prompts that servers answered: more than questions were answered, if work was done twice."""
    busy: float
    """Share of the servers' capacity that was used between a fifth and four fifths of all answers."""
    busy_whole: float
    """The same from begin to end."""
    shares: tuple[float, float]
    """The least and the most that a server answered in the same time, by the mean of all."""
    client_busy: float
    """Share of the time that the workers' processors worked."""
    in_flight: int
    """Most questions that were in flight at once."""
    each_s: tuple[int, ...] = field(repr=False)
    """Questions answered in each second."""
    real_s: float


class _Progress:
    """Observes what is asked and answered by all workers."""

    def __init__(self, questions: int) -> None:
        self.questions = questions
        self.begun = self.answers = self.failures = self.most = 0
        self.all_begun_at = self.last_answer_at = 0.0
        self.ended = 0
        self.fifth_at = self.four_fifths_at = 0.0
        self.each_s: list[int] = []

    def begin(self) -> None:
        self.begun += 1
        self.most = max(self.most, self.begun - self.answers)
        if self.begun == self.questions:
            self.all_begun_at = asyncio.get_running_loop().time()

    def end(self, prompts: int) -> None:
        """Servers have answered them; workers read the answers later."""
        self.ended += prompts
        now = asyncio.get_running_loop().time()
        if not self.fifth_at and self.ended >= self.questions / 5:
            self.fifth_at = now
        if not self.four_fifths_at and self.ended >= self.questions * 4 / 5:
            self.four_fifths_at = now

    def asked(self) -> None:
        pass

    def answered(self, prediction: Any) -> None:
        self.answers += 1
        self.failures += prediction.failure is not None
        self.last_answer_at = asyncio.get_running_loop().time()
        second = int(self.last_answer_at)
        self.each_s += [0] * (second + 1 - len(self.each_s))
        self.each_s[second] += 1

    def stopping(self, in_flight: int) -> None:
        pass


@dataclass(frozen=True)
class _Question:
    key: str


def simulate(setting: Setting, folder: Path) -> Found:
    """Ask all questions of a setting; `folder` is empty and takes the registry and what workers write."""
    with simulated_wire(), gc_seldom():
        return run_virtually(lambda: _Cluster(setting, folder).run(), setting.seed)


class _Cluster:
    def __init__(self, setting: Setting, folder: Path) -> None:
        self.setting = setting
        self.folder = folder
        self.servers = {
            f"http://node-{place:03}:8000/v1": SimulatedServer(
                f"http://node-{place:03}:8000/v1", setting.rate, setting.latency_s, setting.slots
            )
            for place in range(setting.servers)
        }
        self.registry = Registry(folder / "servers.json")
        self.spec = ModelSpec(engine="vllm", name=MODEL, endpoints=(f"registry:{self.registry.path}",))
        self.finder = ServerFinder(self.registry, self.spec)
        self.progress = _Progress(setting.questions)
        for server in self.servers.values():
            server.ended = self.progress.end
        self.questions = [_Question(f"q{place}") for place in range(setting.questions)]

    async def run(self) -> Found:
        begun = time.perf_counter()
        for place in range(self.setting.servers):
            self._register(place)
        beside = [asyncio.create_task(work) for work in (self._send_heartbeats(), self._make_events())]
        processors = [Processor() for _ in range(self.setting.workers)]
        try:
            async with AsyncExitStack() as opened:
                # In a task of its own: what a shard's pool opens later is for this shard's context.
                await asyncio.gather(*(self._ask(*part, opened) for part in enumerate(processors)))
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
        return self._found(processors, time.perf_counter() - begun)

    async def _open(self, processor: Processor, opened: AsyncExitStack) -> tuple[Any, Program]:
        half_s = self.setting.cost_ms / 2000
        engine = await open_engine(self.servers, self.finder, processor, half_s, self.setting.workers)
        opened.push_async_callback(engine.pool.close)
        return engine, Program(engine, processor, half_s, self.progress.begin)

    async def _ask(self, part: int, processor: Processor, opened: AsyncExitStack) -> None:
        """Ask every n-th question, as a shard does."""
        engine, program = await self._open(processor, opened)
        with hold_shard(self.folder, part) as path, open_log(path) as log:
            work = Work(DIGEST, program, MODEL, DIGEST, None)  # type: ignore[arg-type]
            questions = self.questions[part :: self.setting.workers]
            await Scheduler(work, log, self.progress, Spending(), lambda: engine.concurrency, questions).run()

    def _register(self, place: int) -> None:
        address = list(self.servers)[place]
        self.registry.add(RegisteredServer(address, MODEL, f"node-{place:03}", 1, seen_at=time.time()))

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(TIMING.heartbeat_s)
            known = {entry.address for entry in self.registry.read()}
            living = [one.address for one in self.servers.values() if one.state in (State.WORKS, State.REFUSES)]
            self.registry.heartbeat(*(address for address in living if address in known))

    async def _make_events(self) -> None:
        loop = asyncio.get_running_loop()
        for event in sorted(self.setting.events, key=lambda one: one.at_s):
            await asyncio.sleep(event.at_s - loop.time())
            server = list(self.servers.values())[event.server]
            if event.state is not None:
                server.change(event.state)
            if event.rate != 1.0:
                server.slow_down(event.rate)
            if event.state is State.WORKS and event.rate == 1.0:
                self._register(event.server)

    def _found(self, processors: Sequence[Processor], real_s: float) -> Found:
        progress, setting = self.progress, self.setting
        capacity = setting.servers * setting.rate
        counts = [server.count(progress.fifth_at, progress.four_fifths_at) for server in self.servers.values()]
        mean = sum(counts) / len(counts)
        steady_s = progress.four_fifths_at - progress.fifth_at
        took_s = progress.last_answer_at
        return Found(
            took_s=round(took_s, 3),
            all_begun_s=round(progress.all_begun_at, 3),
            answered=progress.answers - progress.failures,
            failed=progress.failures,
            asked=sum(sum(server.answered.values()) for server in self.servers.values()),
            busy=round(0.6 * setting.questions / (capacity * steady_s), 3) if steady_s else 0.0,
            busy_whole=round(progress.answers / (capacity * took_s), 3),
            shares=(round(min(counts) / mean, 3), round(max(counts) / mean, 3)) if mean else (0.0, 0.0),
            client_busy=round(sum(one.worked_s for one in processors) / (took_s * len(processors)), 3),
            in_flight=progress.most,
            each_s=tuple(progress.each_s),
            real_s=round(real_s, 1),
        )
