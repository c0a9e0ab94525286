"""A worker of a distributed run: asks the questions that it is given, by its own engine, and writes its own part.

It is an actor of Ray's, and knows nothing of Ray: its methods are coroutines that the driver calls from afar. The work
itself lives on the process's network loop, as a local run does.
"""

import asyncio
import os
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dspy

import medexam
from medexam.errors import EngineError, RunFolderError
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.plan.words import read_words
from medexam.experiments.run.language_model import build_lm
from medexam.experiments.run.ray.messages import Job, Report, Shown, Sight
from medexam.experiments.run.scheduler import Asking, FailureBudget, flush_regularly
from medexam.experiments.store.run_folder import PredictionLog
from medexam.experiments.store.shards import shard_path
from medexam.files import make_private_folder, open_private
from medexam.gc_pause import gc_paused
from medexam.model_identity import Answerer
from medexam.predictions import Prediction
from medexam.programs import ProgramContext, WithNearest, build_program
from medexam.questions import Question
from medexam.serve import Engine, EngineInfo, build_engine
from medexam.serve.discovery.registry import host_name
from medexam.serve.network.event_loop import background_loop
from medexam.serve.pool.prefix_cache import PrefixCount, count_prefixes
from medexam.specs import EngineNeeds, ModelSpec

REPORT_S = 0.25
"""Seconds after which a worker tells what it has begun, if nothing made it speak before."""


@dataclass(frozen=True)
class _Identified:
    """A cell as `ask` takes it; its questions come by and by."""

    run_id: str
    program_label: str
    program: dspy.Module
    spec_digest: str
    answerer: Answerer | None
    pending: tuple[()] = ()


class _PartLog(PredictionLog):
    """Keeps what reached the disk until it is reported."""

    def __init__(self, path: Path, descriptor: int) -> None:
        super().__init__(path, descriptor)
        self._unflushed: list[Prediction] = []
        self.kept: list[Prediction] = []

    def append(self, prediction: Prediction) -> None:
        super().append(prediction)
        self._unflushed.append(prediction)

    def flush(self) -> None:
        super().flush()
        self.kept += self._unflushed
        self._unflushed = []


@dataclass
class _Supplied:
    """Asking that goes on as long as questions may come; a `QuestionObserver` of itself."""

    job: Job
    shown: Shown
    engine: Engine
    log: _PartLog
    asking: Asking = field(init=False)
    begun: int = 0
    open: bool = True
    ended: bool = False
    fault: Exception | None = None
    fed: asyncio.Event = field(default_factory=asyncio.Event)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        job = self.job
        program = build_program(
            job.cell.program,
            job.cell.dataset.language,
            ProgramContext(
                max_tokens=job.cell.model.max_tokens,
                finder=self.shown.retrieval,
                nearest=partial(NearestDemonstrations, _vectors=self.shown.vectors),
            ),
        )
        if isinstance(program, WithNearest) and isinstance(program.finder, NearestDemonstrations):
            program.finder.fill(())
        planned = _Identified(job.folder.name, job.cell.program.label, program, job.spec_digest, job.answerer)
        self.asking = Asking(planned, self.log, self, FailureBudget(), deque(), lambda: self.engine.concurrency)

    def asked(self) -> None:
        """One question is begun; the driver hears where few are left."""
        self.begun += 1
        if len(self.asking.waiting) <= self.engine.concurrency:
            self.news.set()

    def answered(self, _prediction: Prediction) -> None:
        """One question is done; where it was the last at hand, the driver hears."""
        if not self.asking.waiting and len(self.asking.crew) <= 1:
            self.news.set()

    def stopping(self, in_flight: int) -> None:
        """The driver says so itself."""

    async def run(self) -> None:
        """Ask until nothing can come any more, the asking is over, or it breaks."""
        asking = self.asking
        lm = build_lm(self.job.cell.model, self.engine)
        with dspy.context(lm=lm, disable_history=True), gc_paused():
            feeding, flusher = asyncio.create_task(self._feed()), asyncio.create_task(flush_regularly(asking))
            try:
                while self.open or asking.waiting or asking.crew:
                    await asking.gone.wait()
                    if asking.broken:
                        raise asking.broken
                    if asking.over and not asking.crew:
                        break
                    asking.gone.clear()
                    if not self.open and not asking.waiting and not asking.crew:
                        break
            except Exception as error:
                self.fault = error
            finally:
                tasks = (*asking.crew, feeding, flusher)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                try:
                    self.log.flush()
                except RunFolderError as error:
                    self.fault = error
                self.ended = True
                self.news.set()

    async def _feed(self) -> None:
        while True:
            await self.fed.wait()
            self.fed.clear()
            self.asking.hire()

    def give(self, questions: Sequence[Question]) -> None:
        """More to ask."""
        if questions:
            self.asking.waiting.extend(questions)
            self.fed.set()

    def close(self) -> None:
        """Nothing more comes."""
        self.open = False
        if not self.asking.crew:
            self.asking.gone.set()

    def report(self) -> Report:
        """What happened since the last report."""
        asking = self.asking
        if not asking.crew:
            self._flush()
        done, self.log.kept = tuple(self.log.kept), []
        begun, self.begun = self.begun, 0
        self.news.clear()
        return Report(
            begun=begun,
            done=done,
            waiting=len(asking.waiting),
            in_flight=len(asking.crew),
            concurrency=self.engine.concurrency,
            over=self.ended or (asking.over and not asking.crew),
            hopeless=str(asking.hopeless[0]) if asking.hopeless else None,
            fault=self.fault,
        )

    def _flush(self) -> None:
        try:
            self.log.flush()
        except RunFolderError as error:
            self.fault, self.asking.unwritable = error, True


class Worker:
    """The actor; one job at a time."""

    def __init__(self, directory: str, threads: int) -> None:
        """`directory` is the driver's working directory, `threads` how many this process may compute with."""
        os.environ["OMP_NUM_THREADS"] = str(threads)
        self._directory = directory
        self._engines: dict[ModelSpec, Engine] = {}
        self._supplied: _Supplied | None = None
        self._stream: Any = None
        self._running: asyncio.Task[None] | None = None

    async def look(self, path: Path) -> Sight:
        """Go to the driver's directory and read a file there."""
        try:
            os.chdir(self._directory)
            here = True
        except OSError:
            here = False
        said = await asyncio.to_thread(_read, path)
        return Sight(socket.gethostname(), os.getpid(), medexam.__version__, said, here)

    async def prepare(self, model: ModelSpec, needs: EngineNeeds) -> EngineInfo:
        """Load or reach the model; raises `EngineError` where it cannot be used."""
        if model not in self._engines:
            self._engines[model] = await background_loop().run_async(build_engine(model, needs, near=host_name()))
        return self._engines[model].info()

    async def begin(self, job: Job, shown: Shown) -> PrefixCount | None:
        """Take up a cell; what the servers' prefix caches have counted so far.

        Raises `RunFolderError` where its part cannot be written, or where this machine has other words to ask with.
        """
        if read_words(job.cell.program, job.cell.dataset.language) != job.words:
            raise RunFolderError(
                f"{socket.gethostname()} reads other prompts, examples or program.load than the driver at the paths of "
                "the spec: give all machines the same files, in a folder that they share"
            )
        engine = self._engines[job.cell.model]
        path = shard_path(job.folder, job.part)
        try:
            make_private_folder(path.parent)
            self._stream = open_private(path, "ab")
        except OSError as error:
            raise RunFolderError(f"{socket.gethostname()}: cannot write {path}: {error.strerror}") from None
        counted = await self._count(engine, job.cell.model.ca_bundle)
        await background_loop().run_async(self._start(job, shown, engine))
        return counted

    async def _start(self, job: Job, shown: Shown, engine: Engine) -> None:
        log = _PartLog(shard_path(job.folder, job.part), self._stream.fileno())
        self._supplied = _Supplied(job, shown, engine, log)
        self._running = asyncio.create_task(self._supplied.run())

    async def exchange(self, questions: Sequence[Question], more: bool) -> Report:
        """Take more questions and wait until there is something to tell; `more` says that the driver has others."""
        return await background_loop().run_async(self._exchange(questions, more))

    async def _exchange(self, questions: Sequence[Question], more: bool) -> Report:
        supplied = self._job
        supplied.give(questions)
        asking, begun = supplied.asking, time.monotonic()
        while not supplied.ended and not (asking.over and not asking.crew):
            idle = not asking.waiting and not asking.crew and not supplied.fed.is_set()
            low = more and len(asking.waiting) <= supplied.engine.concurrency
            if idle or (low and not supplied.fed.is_set()) or time.monotonic() - begun >= REPORT_S:
                break
            supplied.news.clear()
            try:
                await asyncio.wait_for(supplied.news.wait(), REPORT_S - (time.monotonic() - begun))
            except TimeoutError:
                break
        return supplied.report()

    async def take_back(self, number: int) -> list[str]:
        """Keys of questions that were not begun and are not going to be here, at most so many."""
        return await background_loop().run_async(self._take_back(number))

    async def _take_back(self, number: int) -> list[str]:
        waiting = self._job.asking.waiting
        return [waiting.pop().key for _ in range(min(number, len(waiting)))]

    async def stop(self, grace_s: float | None) -> Report:
        """Begin no further question, wait so long for those in flight, None: until they are done; the last report."""
        return await background_loop().run_async(self._stop(grace_s))

    async def _stop(self, grace_s: float | None) -> Report:
        supplied = self._job
        supplied.asking.interrupted = True
        if supplied.asking.crew:
            await asyncio.wait(supplied.asking.crew, timeout=grace_s)
        supplied.open = False
        for task in list(supplied.asking.crew):
            task.cancel()
        supplied.asking.gone.set()
        if self._running is not None:
            await self._running
        return supplied.report()

    async def finish(self) -> PrefixCount | None:
        """Leave the cell, of which nothing more is asked; what the servers' prefix caches have counted now."""
        return await background_loop().run_async(self._finish())

    async def _finish(self) -> PrefixCount | None:
        supplied = self._job
        supplied.close()
        if self._running is not None:
            await self._running
        self._stream.close()
        self._supplied = self._running = None
        return await self._count(supplied.engine, supplied.job.cell.model.ca_bundle)

    @property
    def _job(self) -> _Supplied:
        if self._supplied is None:
            raise EngineError("the worker has no cell to ask")
        return self._supplied

    async def _count(self, engine: Engine, ca_bundle: Path | None) -> PrefixCount | None:
        info = engine.info()
        return await count_prefixes(info.endpoints, ca_bundle) if info.engine == "vllm" else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
