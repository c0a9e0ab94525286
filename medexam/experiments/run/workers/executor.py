"""A run spread over workers: they are started, see to it that they can work, and ask cell after cell.

Who gets which question is known to `dispatcher.py`, what a worker does with it to `worker.py`, where workers run to a
launcher, and what becomes of the answers to `shards.py`.
"""

import logging
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.errors import EndpointSilentError, EngineError, MedExamError, RunFolderError
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.plan.words import describe_words
from medexam.experiments.run.executor import RunObserver
from medexam.experiments.run.spending import Spending
from medexam.experiments.run.workers.dispatcher import Dispatcher
from medexam.experiments.run.workers.messages import Assignment, LookedUp
from medexam.experiments.run.workers.remote import Launcher, RemoteWorker, WorkerLostError, ask_all
from medexam.experiments.run.workers.worker import Worker
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.store.shards import SHARDS
from medexam.gc_pause import gc_seldom
from medexam.plugins import __version__
from medexam.serve import EngineInfo
from medexam.specs import EngineNeeds, ModelSpec

_OWN = {"endpoints", "details", "server_version", "identity"}
"""What workers of one run may differ in."""

_log = logging.getLogger(__name__)


class SpreadExecutor:
    """An `Executor` over the workers of a launcher, which are started when the first cell is prepared."""

    def __init__(self, launcher: Launcher) -> None:
        """Spread runs over the workers of `launcher`."""
        self._launcher = launcher
        self.workers: list[RemoteWorker] = []
        self._engines: dict[ModelSpec, tuple[list[RemoteWorker], EngineInfo]] = {}

    async def prepare(self, planned: AnyCell, observer: RunObserver, needs: Mapping[ModelSpec, EngineNeeds]) -> None:
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
        if planned.cell.asked_models:
            raise EngineError(
                f"{planned.run_id}: its steps ask further models (`models`), which workers cannot ask; run it "
                "without --workers and --executor ray"
            )
        if model not in self._engines:
            observer.engine_starts(model)
        self.workers = self.workers or await self._launcher.launch()
        await self._check_shared(planned.folder.path.absolute())
        if model not in self._engines:
            self._engines[model] = await self._reach(model, needs[model])

    def info(self, planned: AnyCell, name: str | None = None) -> EngineInfo | None:  # noqa: ARG002
        """Return what answers the cell, as the first worker that reached it says."""
        return self._engines[planned.cell.model][1]

    async def ask(self, planned: AnyCell, observer: RunObserver, spending: Spending) -> None:
        """Ask the cell's pending questions; the answers lie in shards.

        A worker that dies is warned of, and its questions go to the others. Raises `EngineError` where none is left, or
        for a fault that no other question would escape.
        """
        # Newer than the metrics from now on: nobody may take the run for complete while its answers lie in shards.
        with (planned.folder.path / PREDICTIONS).open("ab") as stream:
            os.utime(stream.fileno())
        workers = await self._begin(planned)
        try:
            with gc_seldom():
                await Dispatcher(planned, workers, observer, spending).run()
        finally:
            survivors = [worker for worker in workers if not worker.lost]
            await ask_all(survivors, lambda worker: worker.handle.call(Worker.finish))

    async def find_changes(self, planned: AnyCell) -> list[str]:
        """Have every worker look again which model answers, and return what the first one that sees another says."""
        living = [member for member in self._engines[planned.cell.model][0] if not member.lost]
        answers = await ask_all(living, lambda member: member.handle.call(Worker.find_changes, planned.cell.model))
        return next((changes for _, changes in answers if changes and isinstance(changes, list)), [])

    def describe(self) -> dict[str, Any]:
        """Describe for `environment.json` what the workers are, and how many questions of the last cell each asked."""
        return {
            **self._launcher.describe(),
            "workers": [
                {"name": worker.name, "host": worker.host, "asked": worker.question_count} for worker in self.workers
            ],
            "lost": [worker.name for worker in self.workers if worker.lost],
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
            living = [member for member in self.workers if not member.lost]
            for worker, answer in await ask_all(
                living, lambda member: member.handle.call(Worker.look, __version__, path)
            ):
                if isinstance(answer, tuple):
                    worker.host, worker.pid = answer
                elif isinstance(answer, MedExamError):
                    raise answer
                elif worker.pid is not None:
                    worker.lose("between two cells")
                else:
                    raise EngineError(
                        f"a worker cannot start on {worker.host}: {_last_line(answer)}; every machine needs this "
                        "environment"
                    )
        finally:
            path.unlink(missing_ok=True)

    async def _reach(self, model: ModelSpec, needs: EngineNeeds) -> tuple[list[RemoteWorker], EngineInfo]:
        living = [member for member in self.workers if not member.lost]
        answers = await ask_all(living, lambda member: member.handle.call(Worker.prepare, model, needs))
        engines: list[tuple[RemoteWorker, EngineInfo]] = []
        for worker, info in answers:
            if isinstance(info, EndpointSilentError):
                _log.warning("medexam: warning: %s: %s; the run continues without this worker", worker.host, info)
            elif isinstance(info, WorkerLostError):
                raise EngineError(f"the worker on {worker.host} died while it prepared {model.label}")
            elif isinstance(info, Exception):
                raise info
            else:
                engines.append((worker, info))
        if not engines:
            raise next(info for _, info in answers if isinstance(info, Exception))
        _check_same_model(engines)
        return [worker for worker, _ in engines], engines[0][1]

    async def _begin(self, planned: AnyCell) -> list[RemoteWorker]:
        """Return the workers that took up the cell."""
        assignment = Assignment(
            planned.cell,
            planned.spec_digest,
            planned.answerer,
            planned.folder.path.absolute(),
            describe_words(planned.cell.program, planned.cell.dataset.language),
        )
        looked_up = self._launcher.share(
            LookedUp(
                planned.retrieval.only_for(planned.pending) if planned.retrieval is not None else None,
                planned.nearest.vectors if planned.nearest is not None else {},
            )
        )
        for worker in self.workers:
            worker.question_count = 0
        living = [member for member in self._engines[planned.cell.model][0] if not member.lost]
        for worker, fault in await ask_all(
            living, lambda member: member.handle.call(Worker.begin, assignment, looked_up)
        ):
            if isinstance(fault, WorkerLostError):
                worker.lose("before it asked anything")
            elif fault is not None:
                raise fault
            else:
                worker.begin_cell()
        if workers := [member for member in living if not member.lost]:
            return workers
        raise EngineError("every worker has stopped; run the same command again to ask the pending questions")


def _check_same_model(engines: Sequence[tuple[RemoteWorker, EngineInfo]]) -> None:
    """Raise `EngineError` where two workers would answer differently."""
    (first, first_info), *other_engines = engines
    for worker, info in other_engines:
        if differences := first_info.identity.differences(info.identity):
            raise EngineError(
                f"{first.host} and {worker.host} reach different models ({'; '.join(differences)}); give all machines "
                "the same one"
            )
        first_fields, fields = first_info.model_dump(exclude=_OWN), info.model_dump(exclude=_OWN)
        if names := [name for name in first_fields if first_fields[name] != fields[name]]:
            raise EngineError(
                f"{first.host} and {worker.host} reach different models (they differ in {', '.join(names)}: "
                f"{first_info.model} and {info.model}); give all machines the same one"
            )


def _last_line(error: Exception) -> str:
    """Extract what ended an actor, without the way there."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
