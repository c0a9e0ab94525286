"""Where the questions of cells are asked: in this process, or by whatever else keeps the same protocol."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.scheduler import QuestionObserver, Scheduler, Work
from medexam.experiments.run.spending import Spending
from medexam.experiments.store.answerers import RUN_WAYS_OUT, admit, models_file
from medexam.experiments.store.prediction_lines import PredictionLog
from medexam.experiments.store.stored_run import StoredRun
from medexam.gc_pause import gc_seldom
from medexam.programs.lm import build_lm, in_bulk
from medexam.serve import Engine, EngineInfo, build_engine
from medexam.serve.contract import FolderEngine, find_changes
from medexam.specs import EngineNeeds, ModelSpec

CONTROL_CONCURRENCY = 1
"""Questions in flight of a program that asks no model."""


class RunObserver(QuestionObserver, Protocol):
    """Watches a run, as a progress bar does."""

    def engine_starts(self, model: ModelSpec) -> None:
        """Note that a model is being loaded or a server probed; it may take a while."""

    def retrieval_starts(self, planned: AnyCell) -> None:
        """Note that the passages of a cell are looked up; it may take a while."""

    def passages_encoded(self, planned: AnyCell, count: int) -> None:
        """Note that `count` passages of the cell's corpus have a vector; called only while its index is made."""

    def cell_starts(self, planned: AnyCell) -> None:
        """Note that a cell begins to ask its pending questions."""

    def cell_ends(self, run: StoredRun) -> None:
        """Note that a cell is scored and its folder complete on disk."""


class Executor(Protocol):
    """Asks the questions of cells."""

    async def prepare(self, planned: AnyCell, observer: RunObserver, needs: Mapping[ModelSpec, EngineNeeds]) -> None:
        """Load or reach the cell's models, of which each needs something; raises `EngineError` where that is not
        possible.
        """

    def info(self, planned: AnyCell, name: str | None = None) -> EngineInfo | None:
        """Return what answers the cell, by now; `name` is that of a further model, None the cell's own.

        None where no model was prepared for it.
        """

    async def ask(self, planned: AnyCell, observer: RunObserver, spending: Spending) -> None:
        """Do what `Scheduler.run` does, and leave the answers in the run's folder or in its shards."""

    async def find_changes(self, planned: AnyCell) -> list[str]:
        """Look again which models answer the cell, and describe what tells them from those at its start."""

    def describe(self) -> dict[str, Any] | None:
        """Describe the executor for `environment.json`; None if there is nothing to say."""


def admit_models(
    planned: AnyCell, executor: Executor, *, answers: int, accept: bool = False, ways_out: str = RUN_WAYS_OUT
) -> AnyCell:
    """Return the cell with the models that may answer in its folder, of which `answers` are there; raises as `admit`
    does.
    """
    folder, further = planned.folder, {}
    for name in planned.cell.asked_models:
        if (info := executor.info(planned, name)) is not None:
            further[name] = admit(folder, info.identity, answers=answers, accept=accept, file=models_file(name))
    if (info := executor.info(planned)) is None:
        return planned
    own = admit(folder, info.identity, answers=answers, count_cut=folder.count_cut, accept=accept, ways_out=ways_out)
    return replace(planned, answerer=own, further=further)


class LocalExecutor:
    """Asks from this process; the cells of a model share its engine."""

    def __init__(self, **places: Any) -> None:
        """`places` says which servers are asked, in the words of `build_engine`."""
        self._places = places
        self._engines: dict[ModelSpec, Engine] = {}

    async def prepare(self, planned: AnyCell, observer: RunObserver, needs: Mapping[ModelSpec, EngineNeeds]) -> None:
        """Build the engine of each model, if it is the model's first cell."""
        for model in planned.models:
            if model not in self._engines:
                observer.engine_starts(model)
                self._engines[model] = await build_engine(model, needs[model], **self._places)

    def info(self, planned: AnyCell, name: str | None = None) -> EngineInfo | None:
        """Return what answers the cell; after faults other servers may have come since it was prepared."""
        engine = self._engine(planned) if name is None else self._engines.get(planned.cell.models[name])
        return engine.info() if engine else None

    async def ask(self, planned: AnyCell, observer: RunObserver, spending: Spending) -> None:
        """Ask the cell's pending questions."""
        await self.ask_into(planned.folder.appending, planned, observer, spending)

    async def find_changes(self, planned: AnyCell) -> list[str]:
        """Look again at each of the cell's models."""
        engines = [engine for model in planned.models if (engine := self._engines.get(model)) is not None]
        return [change for engine in engines for change in await find_changes(engine)]

    async def ask_into(
        self,
        open_log: Callable[[], AbstractContextManager[PredictionLog]],
        planned: AnyCell,
        observer: QuestionObserver,
        spending: Spending,
        *,
        ahead: bool = False,
    ) -> None:
        """Ask the cell's pending questions, and append the answers to a log.

        `ahead`, for a model that `answers_later`, leaves the requests that the cell makes by itself before their
        replies: other cells are submitted meanwhile.
        """
        engine, cell = self._engine(planned), planned.cell
        lm = build_lm(cell.model, engine) if engine else None
        others = {name: build_lm(one, self._engines[one], asked=name) for name, one in cell.asked_models.items()}
        with open_log() as log, in_bulk(lm, others), gc_seldom():
            concurrency = (lambda: engine.concurrency) if engine else (lambda: CONTROL_CONCURRENCY)
            scheduler = Scheduler(Work.of(planned), log, observer, spending, concurrency, planned.pending)
            if isinstance(engine, FolderEngine):
                leave = scheduler.leave if ahead else None
                async with engine.work_in(planned.folder.path, lambda: len(scheduler.tasks), leave):
                    await scheduler.run()
            else:
                await scheduler.run()

    def describe(self) -> dict[str, Any] | None:
        """Describe nothing."""
        return None

    async def aclose(self) -> None:
        """Close the engines."""
        for engine in self._engines.values():
            await engine.aclose()

    def _engine(self, planned: AnyCell) -> Engine | None:
        return self._engines.get(planned.cell.model) if planned.asks_model else None
