"""A run spread over workers: they are started, see to it that they can work, and ask cell after cell.

Who gets which question is known to `dispatcher.py`, what a worker does with it to `worker.py`, where workers run to a
launcher, and what becomes of the answers to `shards.py`.
"""

import logging
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.errors import EndpointSilentError, EngineError, MedExamError, RunFolderError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.plan.words import read_words
from medexam.experiments.run.executor import RunObserver
from medexam.experiments.run.spending import Spending
from medexam.experiments.run.workers.dispatcher import Dispatcher
from medexam.experiments.run.workers.messages import Assignment, LookedUp
from medexam.experiments.run.workers.remote import Launcher, RemoteWorker, WorkerLostError, ask_all
from medexam.experiments.run.workers.worker import Worker
from medexam.experiments.store.environment import Invocation
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.store.shards import SHARDS
from medexam.gc_pause import gc_paused
from medexam.serve import EngineInfo
from medexam.serve.pool.prefix_cache import PrefixCount
from medexam.specs import EngineNeeds, ModelSpec
from medexam.version import __version__

_OWN = {"endpoints", "details", "server_version", "identity"}
"""What workers of one run may differ in."""
_LOOPBACK = ("://127.", "://localhost", "://[::1]")

_log = logging.getLogger(__name__)


class SpreadExecutor:
    """An `Executor` over the workers of a launcher, which are started when the first cell is prepared."""

    def __init__(self, launcher: Launcher) -> None:
        """The workers are the launcher's."""
        self._launcher = launcher
        self.workers: list[RemoteWorker] = []
        self._reached: dict[ModelSpec, tuple[list[RemoteWorker], EngineInfo]] = {}

    async def prepare(self, planned: AnyCell, observer: RunObserver, needs: EngineNeeds) -> None:
        """Have every worker see the run's folder and reach the model.

        A worker whose server is silent is left out with a warning. Raises `EngineError` where none reaches the model,
        or they reach different ones, and `RunFolderError` where a worker does not see the folder.
        """
        model = planned.cell.model
        if planned.cell.program.local_reader is not None:
            raise EngineError(
                f"{planned.run_id}: its passages are read by a local model (program.reader), which workers do not "
                "load; run it without --workers and --executor ray"
            )
        if model not in self._reached:
            observer.engine_starts(model)
        self.workers = self.workers or await self._launcher.launch()
        await self._check_shared(planned.folder.path.absolute())
        if model not in self._reached:
            self._reached[model] = await self._reach(model, needs)

    def info(self, planned: AnyCell) -> EngineInfo | None:
        """What answers the cell, as the first worker that reached it says."""
        return self._reached[planned.cell.model][1]

    async def ask(self, planned: AnyCell, observer: RunObserver, spending: Spending, invocation: Invocation) -> None:
        """Ask the cell's pending questions; the answers lie in shards.

        A worker that dies is warned of, and its questions go to the others. Raises `EngineError` where none is left, or
        for a fault that no other question would escape.
        """
        # Newer than the metrics from now on: nobody may take the run for complete while its answers lie in shards.
        with (planned.folder.path / PREDICTIONS).open("ab") as stream:
            os.utime(stream.fileno())
        workers = await self._begin(planned)
        try:
            with gc_paused():
                await Dispatcher(planned, workers, observer, spending).run()
        finally:
            left = [one for one in workers if not one.lost]
            _count_cached(await ask_all(left, lambda one: one.handle.call(Worker.finish)), invocation)

    def describe(self) -> dict[str, Any]:
        """What `environment.json` says: what the workers are, and how many questions each asked in this invocation."""
        return {
            **self._launcher.describe(),
            "workers": [{"name": one.name, "host": one.host, "asked": one.asked} for one in self.workers],
            "lost": [one.name for one in self.workers if one.lost],
        }

    async def _check_shared(self, folder: Path) -> None:
        """Raise unless every worker finds a file that is written now, and runs this version."""
        shards = folder / SHARDS
        # A name that no folder has by chance: another machine may have a folder of its own at the same path.
        path = shards / f".{uuid.uuid4().hex}"
        try:
            shards.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as error:
            raise RunFolderError(f"cannot write {shards}: {error.strerror}") from None
        try:
            living = [one for one in self.workers if not one.lost]
            for worker, seen in await ask_all(living, lambda one: one.handle.call(Worker.look, __version__, path)):
                if isinstance(seen, tuple):
                    worker.host, worker.pid = seen
                elif isinstance(seen, MedExamError):
                    raise seen
                elif worker.pid is not None:
                    worker.lose("between two cells")
                else:
                    raise EngineError(
                        f"a worker cannot start on {worker.host}: {_last_line(seen)}; every machine needs this "
                        "environment"
                    )
        finally:
            path.unlink(missing_ok=True)

    async def _reach(self, model: ModelSpec, needs: EngineNeeds) -> tuple[list[RemoteWorker], EngineInfo]:
        living = [one for one in self.workers if not one.lost]
        found = await ask_all(living, lambda one: one.handle.call(Worker.prepare, model, needs))
        reached: list[tuple[RemoteWorker, EngineInfo]] = []
        for worker, info in found:
            if isinstance(info, EndpointSilentError):
                _log.warning("medexam: warning: %s: %s; the run goes on without this worker", worker.host, info)
            elif isinstance(info, WorkerLostError):
                raise EngineError(f"the worker on {worker.host} died while it prepared {model.label}")
            elif isinstance(info, Exception):
                raise info
            else:
                worker.endpoints = info.endpoints
                reached.append((worker, info))
        if not reached:
            raise next(info for _, info in found if isinstance(info, Exception))
        _check_same_model(reached)
        return [worker for worker, _ in reached], reached[0][1]

    async def _begin(self, planned: AnyCell) -> list[RemoteWorker]:
        """The workers that took up the cell."""
        assignment = Assignment(
            planned.cell,
            planned.spec_digest,
            planned.answerer,
            planned.folder.path.absolute(),
            read_words(planned.cell.program, planned.cell.dataset.language),
        )
        looked_up = self._launcher.share(
            LookedUp(
                planned.retrieval.only_for(planned.pending) if planned.retrieval is not None else None,
                planned.nearest.vectors if planned.nearest is not None else {},
            )
        )
        living = [one for one in self._reached[planned.cell.model][0] if not one.lost]
        for worker, counted in await ask_all(living, lambda one: one.handle.call(Worker.begin, assignment, looked_up)):
            if isinstance(counted, WorkerLostError):
                worker.lose("before it asked anything")
            elif isinstance(counted, Exception):
                raise counted
            else:
                worker.begin_cell(counted)
        if begun := [one for one in living if not one.lost]:
            return begun
        raise EngineError("every worker is gone; run the same again to ask what is pending")


def _check_same_model(reached: Sequence[tuple[RemoteWorker, EngineInfo]]) -> None:
    """Raise `EngineError` where two workers would answer differently."""
    (first, ours), *others = reached
    for worker, theirs in others:
        if told := ours.identity.differences(theirs.identity):
            raise EngineError(
                f"{first.host} and {worker.host} reach different models ({'; '.join(told)}); give all machines "
                "the same one"
            )
        one, other = ours.model_dump(exclude=_OWN), theirs.model_dump(exclude=_OWN)
        if differing := [name for name in one if one[name] != other[name]]:
            raise EngineError(
                f"{first.host} and {worker.host} reach different models (they differ in {', '.join(differing)}: "
                f"{ours.model} and {theirs.model}); give all machines the same one"
            )


def _count_cached(finished: Sequence[tuple[RemoteWorker, Any]], invocation: Invocation) -> None:
    """Add up what the servers' prefix caches counted, each server's once."""
    counted = set()
    for worker, after in finished:
        # A loopback address is another server on each host; any other one is the same for all.
        own = any(mark in one for one in worker.endpoints for mark in _LOOPBACK)
        servers = (worker.host if own else "", worker.endpoints)
        if servers not in counted and isinstance(after, PrefixCount):
            counted.add(servers)
            invocation.count_cached(worker.cached_before, after)


def _last_line(error: Exception) -> str:
    """What ended an actor, without the way there."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
