"""A worker of a distributed run: asks the questions that it is given, by its own engine, and writes its own shard.

Its methods are coroutines that the driver calls from afar; it does not know how. The work itself lives on the process's
network loop, as a local run does.
"""

import asyncio
import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

import dspy

from medexam.errors import EngineError, RunFolderError
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.plan.passage_lookup import Retrieval
from medexam.experiments.plan.text_search import TextSearch
from medexam.experiments.plan.words import describe_words
from medexam.experiments.run.scheduler import Scheduler, Work
from medexam.experiments.run.spending import Spending
from medexam.experiments.run.workers.messages import Assignment, LookedUp, WorkerReport
from medexam.experiments.store.prediction_lines import PredictionLog
from medexam.experiments.store.shards import shard_path
from medexam.files import host_name
from medexam.gc_pause import gc_seldom
from medexam.plugins import __version__
from medexam.predictions import Prediction
from medexam.programs import ProgramContext, build_program
from medexam.programs.lm import build_lm, in_bulk
from medexam.programs.nearest import find_nearest
from medexam.questions import Question
from medexam.serve import Engine, EngineInfo, build_engine
from medexam.serve.contract import find_changes
from medexam.serve.network.event_loop import background_loop
from medexam.specs import EngineNeeds, ModelSpec

REPORT_S = 0.25
"""Seconds after which a worker reports what it has begun, if nothing made it report before."""


class _ShardLog(PredictionLog):
    """Keeps what reached the disk until it is reported."""

    def __init__(self, path: Path, descriptor: int) -> None:
        super().__init__(path, descriptor)
        self._flushed: list[bytes] = []

    def flush(self) -> None:
        lines = tuple(self._waiting)
        super().flush()
        self._flushed += lines

    def take_flushed(self) -> tuple[bytes, ...]:
        """Return the lines that reached the disk since this was last called."""
        lines, self._flushed = tuple(self._flushed), []
        return lines


class _CellRun:
    """A cell that is asked as long as questions may come; it observes its own scheduler. On the network loop alone."""

    def __init__(
        self, assignment: Assignment, looked_up: LookedUp, engine: Engine, path: Path, stream: IO[bytes]
    ) -> None:
        """Ask the cell of the assignment; `stream` is the open end of the shard at `path`."""
        cell = assignment.cell
        program = build_program(
            cell.program,
            cell.dataset.language,
            ProgramContext(
                max_tokens=cell.model.max_tokens,
                finder=looked_up.retrieval,
                search=_text_search(looked_up.retrieval),
                nearest=partial(NearestDemonstrations, vectors=looked_up.vectors),
            ),
        )
        if isinstance(finder := find_nearest(program), NearestDemonstrations):
            finder.fill(())
        work = Work(assignment.folder.name, program, cell.program.label, assignment.spec_digest, assignment.answerer)
        self.model = cell.model
        self.engine = engine
        self._stream = stream
        self._log = _ShardLog(path, stream.fileno())
        self._scheduler = Scheduler(work, self._log, self, Spending(), lambda: engine.concurrency, open=True)
        self._starts = 0
        self._fault: Exception | None = None
        self._news = asyncio.Event()
        """Set when the driver should hear at once."""
        self._running = asyncio.create_task(self._run(build_lm(cell.model, engine)))

    def asked(self) -> None:
        """Note that one question is begun; the driver hears where few are left."""
        self._starts += 1
        if self._is_low:
            self._news.set()

    def answered(self, _prediction: Prediction) -> None:
        """Note that one question is done; where it was the last at hand, the driver hears."""
        if not self._scheduler.waiting and len(self._scheduler.tasks) <= 1:
            self._news.set()

    def stopping(self, in_flight: int) -> None:
        """Do nothing: the driver says so itself."""

    @property
    def _is_low(self) -> bool:
        """Whether no more questions wait than may be in flight."""
        return len(self._scheduler.waiting) <= self.engine.concurrency

    async def _run(self, lm: dspy.LM) -> None:
        try:
            with in_bulk(lm), gc_seldom():
                await self._scheduler.run()
        except Exception as error:
            # Reported and not raised: nobody awaits this task before the cell ends.
            self._fault = error
        finally:
            self._news.set()

    async def exchange(self, questions: Sequence[Question], has_more: bool) -> WorkerReport:
        """Take questions and wait until there is something to report; `has_more` says that the driver has others."""
        start, scheduler = time.monotonic(), self._scheduler
        scheduler.supply(questions)
        while not self._running.done() and (remaining_s := REPORT_S - (time.monotonic() - start)) > 0:
            if not (scheduler.waiting or scheduler.tasks) or (has_more and self._is_low):
                break
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), remaining_s)
        return self._report()

    async def take_back(self, number: int) -> list[str]:
        """Give up at most `number` questions that were not begun, and return their keys."""
        waiting = self._scheduler.waiting
        return [waiting.pop().key for _ in range(min(number, len(waiting)))]

    async def stop(self, grace_s: float | None) -> WorkerReport:
        """Return the last report, once what is in flight is done or `grace_s` seconds passed (None: no limit)."""
        await self._scheduler.stop(grace_s)
        await self._running
        return self._report()

    async def finish(self) -> None:
        """End, once what was supplied is asked."""
        self._scheduler.close()
        await self._running
        self._stream.close()

    def _report(self) -> WorkerReport:
        if not self._scheduler.tasks:
            # Only what is on the disk is reported: an idle worker would leave the driver waiting for the next flush.
            self._scheduler.flush()
        starts, self._starts = self._starts, 0
        return WorkerReport(
            starts=starts,
            lines=self._log.take_flushed(),
            waiting=len(self._scheduler.waiting),
            concurrency=self.engine.concurrency,
            over=self._running.done(),
            fault=self._fault,
        )


def _text_search(retrieval: Retrieval | None) -> TextSearch | None:
    """Build what looks up the model's own queries on this machine; None for a program without."""
    return TextSearch(retrieval) if retrieval is not None and retrieval.settings.query == "written" else None


class Worker:
    """Asks one cell at a time."""

    def __init__(self, name: str, directory: str, threads: int, sharers: int = 1) -> None:
        """Take the `name` of its shards, the driver's `directory`, and how many `threads` it may compute with.

        `sharers` workers of this machine, this one included, ask the same servers.
        """
        os.environ["OMP_NUM_THREADS"] = str(threads)
        self._name = name
        self._directory = directory
        self._sharers = sharers
        self._engines: dict[ModelSpec, Engine] = {}
        self._cell: _CellRun | None = None

    async def look(self, version: str, mark: Path) -> tuple[str, int]:
        """Go to the driver's directory, and return this worker's host and process id.

        Raises `EngineError` if this machine has another `version` of medexam than the driver, and `RunFolderError` if
        it does not see the file `mark`, which the driver has just written, or the directory.
        """
        host = socket.gethostname()
        if version != __version__:
            raise EngineError(
                f"{host} has medexam {__version__} and the driver {version}: use one environment for all "
                "machines of the cluster"
            )
        if not await asyncio.to_thread(mark.exists):
            raise RunFolderError(
                f"{host} does not see {mark.parent.parent}: a distributed run needs a folder that all machines share; "
                "choose one by --runs-dir or MEDEXAM_RUNS"
            )
        try:
            os.chdir(self._directory)
        except OSError:
            raise RunFolderError(
                f"{host} does not see {self._directory}, to which the spec's paths are relative: start the run in a "
                "folder that all machines share"
            ) from None
        return host, os.getpid()

    async def prepare(self, model: ModelSpec, needs: EngineNeeds) -> EngineInfo:
        """Load or reach the model; raises `EngineError` where it cannot be used."""
        if model not in self._engines:
            self._engines[model] = await background_loop().run_async(
                build_engine(model, needs, prefer_host=host_name(), sharers=self._sharers)
            )
        return self._engines[model].info()

    async def find_changes(self, model: ModelSpec) -> list[str]:
        """Look again which model answers, as the function of that name does."""
        return await find_changes(self._engines[model])

    async def begin(self, assignment: Assignment, looked_up: LookedUp) -> None:
        """Take up a cell.

        Raises `RunFolderError` where its shard cannot be written, or where this machine has other words to ask with.
        """
        cell = assignment.cell
        if describe_words(cell.program, cell.dataset.language) != assignment.words:
            raise RunFolderError(
                f"{socket.gethostname()} reads other prompts, examples or program.load than the driver at the paths of "
                "the spec: give all machines the same files, in a folder that they share"
            )
        path, engine = shard_path(assignment.folder, self._name), self._engines[cell.model]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = path.open("ab")
        except OSError as error:
            raise RunFolderError(f"{socket.gethostname()}: cannot write {path}: {error.strerror}") from None

        async def start() -> _CellRun:
            return _CellRun(assignment, looked_up, engine, path, stream)

        # Made on the loop of the engine's connections: its events and tasks belong to the loop that made them.
        self._cell = await background_loop().run_async(start())

    async def exchange(self, questions: Sequence[Question], has_more: bool) -> WorkerReport:
        """Exchange questions and a report, as `_CellRun.exchange` does."""
        return await background_loop().run_async(self._begun_cell.exchange(questions, has_more))

    async def take_back(self, number: int) -> list[str]:
        """Give up questions, as `_CellRun.take_back` does."""
        return await background_loop().run_async(self._begun_cell.take_back(number))

    async def stop(self, grace_s: float | None) -> WorkerReport:
        """Stop the cell, as `_CellRun.stop` does."""
        return await background_loop().run_async(self._begun_cell.stop(grace_s))

    async def finish(self) -> None:
        """Leave the cell, of which nothing more is asked."""
        cell, self._cell = self._begun_cell, None
        await background_loop().run_async(cell.finish())

    async def close(self) -> None:
        """Stop asking at once, with every answer on the disk, and close the engines."""
        if self._cell is not None:
            await self.stop(0.0)
        for engine in self._engines.values():
            await engine.aclose()

    @property
    def _begun_cell(self) -> _CellRun:
        if self._cell is None:
            raise EngineError("the worker has no cell to ask")
        return self._cell
