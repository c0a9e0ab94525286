"""Carrying out a plan: engines are built once and shared, cells run one after the other, folders are always left whole.

It knows nothing of the terminal and of MLflow: progress goes to an observer, tracking reads the run folders.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.plan.cells import PlannedCell, combine_needs
from medexam.experiments.plan.plans import Plan
from medexam.experiments.report.current import fresh_run, score_cell
from medexam.experiments.run.scheduler import Scheduler, answer, run_interruptibly
from medexam.experiments.run.spending import NO_LIMITS, Limits, Spending, Stop
from medexam.experiments.store.environment import (
    MODELS,
    admit,
    build_environment,
    describe_environment,
    list_prices,
    note_doubt,
)
from medexam.experiments.store.items import release_memory
from medexam.experiments.store.run_folder import ENVIRONMENT, PREDICTIONS
from medexam.experiments.store.stored_run import StoredRun
from medexam.predictions import Prediction
from medexam.process import gc_seldom, quiet_dspy
from medexam.programs.base import build_lm, in_bulk
from medexam.serve import Engine, EngineInfo, build_engine
from medexam.serve.contract import find_changes
from medexam.specs import EngineNeeds, ModelSpec
from medexam.text import print_notice


class Executor:
    """Asks the questions of cells from this process; the cells of a model share its engine."""

    description: Mapping[str, Any] | None = None
    """What `environment.json` says of it."""

    def __init__(self) -> None:
        self._engines: dict[ModelSpec, Engine] = {}

    async def prepare(
        self, planned: PlannedCell, observer: RunProgress, needs: Mapping[ModelSpec, EngineNeeds]
    ) -> None:
        """Load or reach the cell's models, of which each needs something; raises `EngineError` if that fails."""
        for model in planned.models.values():
            if model not in self._engines:
                observer.engine_starts(model)
                self._engines[model] = await build_engine(model, needs[model])

    def admit(self, planned: PlannedCell, answers: int) -> PlannedCell:
        """Return the cell with its models, which are prepared, if they may answer in its folder, of which `answers` are
        there; raises as `admit` does.
        """
        answerers = dict(planned.answerers)
        for name in planned.models:
            if info := self.info(planned, name):
                file = f"models.{name}.json" if name else MODELS
                answerers[name] = admit(planned.folder, info.identity, answers=answers, file=file)
        return replace(planned, answerers=answerers)

    def info(self, planned: PlannedCell, name: str | None = None) -> EngineInfo | None:
        """Return what answers the cell by now; `name` is that of a further model. None where none was prepared."""
        engine = self._reached(planned).get(name)
        return engine.info() if engine else None

    def _reached(self, planned: PlannedCell) -> dict[str | None, Any]:
        return {name: self._engines[model] for name, model in planned.models.items() if model in self._engines}

    def in_bulk(self, planned: PlannedCell) -> Any:
        """Return a context of DSPy in which the cell's models, which are prepared, are asked."""
        engines = self._reached(planned).items()
        lms: dict[Any, Any] = {name: build_lm(planned.models[name], one, asked=name) for name, one in engines}
        return in_bulk(lms.pop(None, None), lms)

    async def ask(
        self, planned: PlannedCell, observer: RunProgress, spending: Spending, log: str = PREDICTIONS
    ) -> None:
        """Ask the cell's pending questions, and append the answers to a log of its folder."""
        engine = self._reached(planned).get(None)
        with planned.folder.appending(log) as lines, self.in_bulk(planned), gc_seldom():
            # A program that asks no model has one question in flight.
            in_flight = spending.limits.in_flight
            scheduler = Scheduler(
                *(planned, lines, observer, spending), lambda: (in_flight or engine.concurrency) if engine else 1
            )
            work_in = getattr(engine, "work_in", lambda *_: nullcontext())
            async with work_in(planned.folder.path, lambda: len(scheduler.tasks)):
                await scheduler.run()

    async def find_changes(self, planned: PlannedCell) -> list[str]:
        """Look again which models answer the cell, and describe what tells them from those at its start."""
        return [change for one in self._reached(planned).values() for change in await find_changes(one)]

    async def aclose(self) -> None:
        """Close the engines."""
        for engine in self._engines.values():
            await engine.aclose()


class Runner:
    """Carries out one plan, once."""

    def __init__(
        self, plan: Plan, observer: RunProgress, *, limits: Limits = NO_LIMITS, executor: Executor | None = None
    ) -> None:
        """Take the plan; `limits` count over all cells, `executor` asks the models, None stands for this process."""
        self._plan, self._observer = plan, observer
        self.spending = Spending(limits)
        self._executor = executor or Executor()
        self._runs: list[StoredRun] = []
        self._machine = dict[str, Any]()
        """What the run runs on."""

    def run(self) -> tuple[list[StoredRun], Stop | None]:
        """Ask the pending questions of every cell; return the stored runs and why it stopped early, None if it did not.

        Ctrl-C begins no further question, waits a few seconds for those in flight, leaves every finished answer on disk
        and scores what is there; a second one does not wait. So does a limit that is reached:
        those in flight are finished. Raises `SpecError` if dollars are limited, and a model that somebody may bill has
        no price.
        """
        for planned in self._plan.runs if self.spending.limits.cost is not None else ():
            for model in planned.models.values() if planned.pending else ():
                if not model.is_free and list_prices(model) is None:
                    raise SpecError(
                        f"a limit of dollars: no price of {model.label} is known: give --price IN,OUT (model.price), "
                        "the dollars of a million tokens of prompts and of replies, or leave --max-cost out"
                    )
        with suppress(KeyboardInterrupt), quiet_dspy():
            return self._runs, run_interruptibly(self._run_cells())
        return self._runs, Stop.INTERRUPTED

    async def _run_cells(self) -> Stop | None:
        try:
            for planned in self._plan.runs:
                folder, metrics = planned.folder, planned.cell.metrics
                folder.create()
                with folder.locked():
                    is_interrupted = await self._run_cell(planned)
                    release_memory(planned.question_set.questions)
                    run = None if planned.pending or metrics else fresh_run(folder)
                    self._runs.append(run or score_cell(folder, planned.question_set, None, metrics))
                    release_memory(planned.question_set.questions)
                self._observer.cell_ends(self._runs[-1])
                if is_interrupted:
                    return Stop.INTERRUPTED
                is_done = len(self._runs) == len(self._plan.runs) and all(run.complete for run in self._runs)
                if not is_done and (limit := self.spending.exhausted):
                    return limit
        finally:
            await self._executor.aclose()
        return None

    async def _run_cell(self, planned: PlannedCell) -> bool:
        """Ask the cell's pending questions; return whether it was interrupted."""
        folder, plan, executor, held = planned.folder, self._plan, self._executor, planned
        # The folder is locked now; it and others may hold more than when the cell was planned.
        folder.merge_shards()
        if folder.log_bytes != planned.log_bytes:
            planned = planned.updated()
        if planned.lender is None:
            planned = planned.with_lender()
            if line := planned.lent_note:
                print_notice(line)
        if not planned.pending:
            # Nobody need be reached, unless another model gave the folder's answers than those that are lent.
            planned = planned.take_lent(None)
        if planned.asks_model and planned.pending:
            await executor.prepare(planned, self._observer, combine_needs(plan.runs))
            planned = executor.admit(planned, planned.answered)
            info = executor.info(planned)
            planned = planned.take_lent(info.identity if info else None)
        planned.begin()
        planned = planned.in_blocks()
        # Nothing that holds the plan holds its questions any longer.
        vars(held).update(question_set=planned.question_set, pending=planned.pending)
        release_memory(planned.question_set.questions)
        before = folder.read_environment()
        if before and not planned.pending:
            return False
        # Before anything is asked as well: of a run that is killed, too, the folder says what it ran on. MLflow knows a
        # run by the moment at which it was begun.
        before = {"started_at": (await self._write_environment(planned, before))["started_at"], **before}
        try:
            planned = await self._look_up(planned)
            await self._ask(planned, before)
        except asyncio.CancelledError:
            # What is there is still scored: unless the cancellation is undone, every later wait would raise it again.
            task: Any = asyncio.current_task()
            task.uncancel()
            return True
        return False

    async def _look_up(self, planned: PlannedCell) -> PlannedCell:
        """Find what prompts show beside the pending questions."""
        if planned.retrieval is None:
            return planned.look_up()
        task: Any = asyncio.current_task()
        move = self._observer.retrieval_starts(planned)

        def progress(count: int) -> None:
            if task.cancelling():
                raise asyncio.CancelledError
            move(count)

        looking = asyncio.create_task(asyncio.to_thread(planned.look_up, progress))
        try:
            # A thread cannot be cancelled, only asked to stop: unshielded, it would continue unseen and write to an
            # index that the next run opens.
            return await asyncio.shield(looking)
        except asyncio.CancelledError:
            await asyncio.wait([looking])
            raise

    async def _ask(self, planned: PlannedCell, before: dict[str, Any]) -> None:
        """Ask, and note and say if another model answers at the end than at the start, which may have answered."""
        self._observer.cell_starts(planned)
        await asyncio.to_thread(self.spending.begin_cell, planned)
        start, questions = time.monotonic(), self.spending.questions
        try:
            await self._executor.ask(planned, self._observer, self.spending)
            answerer = planned.answerers.get(None)
            changes = await self._executor.find_changes(planned) if answerer else []
            answers = planned.updated().answered - planned.answered if changes else 0
            if answers > 0 and answerer:
                note_doubt(planned.folder, answerer, answers, changes)
                print_notice(
                    f"warning: {planned.run_id}: another model answers now than at the start ({'; '.join(changes)}), "
                    f"and it may have given {answers:,} of the answers; the run is not ranked: ask again with --fresh"
                )
        finally:
            planned.folder.merge_shards()
            await self._write_environment(
                planned, before, time.monotonic() - start, self.spending.questions - questions
            )

    async def _write_environment(
        self, planned: PlannedCell, before: dict[str, Any], seconds: float = 0.0, questions: int = 0
    ) -> dict[str, Any]:
        """Write the run's environment and return it; `before` is what the run's earlier invocations wrote."""
        infos = {name: self._executor.info(planned, name) for name in planned.models}
        self._machine = self._machine or await asyncio.to_thread(describe_environment)
        environment = build_environment(planned.models, infos, before, self._machine, seconds, questions)
        if planned.asks_model and self._executor.description:
            environment["executor"] = self._executor.description
        planned.folder.write_json(ENVIRONMENT, environment)
        return environment


async def ask_one(planned: PlannedCell, question: Any, observer: RunProgress) -> Prediction:
    """Ask one question of a cell and keep nothing; raises `EngineError` if the model cannot be had."""
    planned, executor = await asyncio.to_thread(replace(planned, pending=(question,)).look_up), Executor()
    try:
        await executor.prepare(planned, observer, combine_needs([planned]))
        with executor.in_bulk(planned):
            return (await answer(planned, question))[0]
    finally:
        await executor.aclose()
