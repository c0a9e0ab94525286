"""Carrying out a plan: engines are built once and shared, cells run one after the other, folders are always left whole.

It knows nothing of the terminal and of MLflow: progress goes to an observer, tracking reads the run folders.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from medexam.errors import EngineError, SpecError
from medexam.experiments.plan.cells import AnyCell, Plan, combine_needs
from medexam.experiments.plan.lending import describe_lent, take_lent, with_lender
from medexam.experiments.report.current import fresh_run
from medexam.experiments.report.derived import score_cell
from medexam.experiments.run.executor import Executor, LocalExecutor, RunObserver, admit_models
from medexam.experiments.run.refusals import close_refused
from medexam.experiments.run.rereading import read_run_again
from medexam.experiments.run.signals import run_interruptibly
from medexam.experiments.run.spending import NO_LIMITS, Limits, Spending, Stop
from medexam.experiments.run.spread import SpreadExecutor
from medexam.experiments.store.answerers import note_doubt
from medexam.experiments.store.environment import Invocation, build_environment, describe_further, list_prices
from medexam.experiments.store.items import begin_run
from medexam.experiments.store.run_folder import ENVIRONMENT
from medexam.experiments.store.stored_run import StoredRun
from medexam.library_logging import quiet_dspy
from medexam.serve import EngineInfo
from medexam.specs import ModelSpec

_log = logging.getLogger(__name__)


class _LookUpStoppedError(Exception):
    """Ctrl-C came while an index was made."""


class Runner:
    """Carries out one plan, once."""

    def __init__(
        self, plan: Plan, observer: RunObserver, *, limits: Limits = NO_LIMITS, executor: Executor | None = None
    ) -> None:
        """Take the plan; `limits` count over all cells, `executor` asks the models, None stands for this process."""
        self._plan = plan
        self._observer = observer
        self.spending = Spending(limits)
        self._executor = executor or LocalExecutor()
        self._local = self._executor if isinstance(self._executor, LocalExecutor) else LocalExecutor()
        self._runs: dict[int, StoredRun] = {}
        """Position of a cell in the plan -> its run."""
        self._changes: dict[ModelSpec, str] = {}
        """Model -> what tells the one that answers by now from the one that answered at a cell's start."""
        self._begun: set[str] = set()
        """Ids of the runs that were asked something, or would have been."""

    def run(self) -> tuple[list[StoredRun], Stop | None]:
        """Ask the pending questions of every cell; return the stored runs and why it stopped early, None if it did not.

        Ctrl-C begins no further question, waits a few seconds for those in flight, leaves every finished answer on disk
        and scores what is there; a second one does not wait. So does a limit that is reached:
        those in flight are finished.
        """
        self._check_prices()
        stop: Stop | None
        try:
            with quiet_dspy():
                stop = run_interruptibly(self._run_cells())
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        return [self._runs[position] for position in sorted(self._runs)], stop

    def _check_prices(self) -> None:
        """Raise `SpecError` if dollars are limited, and a model that somebody may bill has no price."""
        if self.spending.limits.cost is None:
            return
        for planned in self._plan.cells:
            for model in planned.models:
                if planned.asks_model and planned.pending and not model.is_free and list_prices(model) is None:
                    raise SpecError(
                        f"a limit of dollars: no price of {model.label} is known: give --price IN,OUT (model.price), "
                        "the dollars of a million tokens of prompts and of replies, or leave --max-cost out"
                    )

    async def _run_cells(self) -> Stop | None:
        cells, stop = self._plan.cells, None
        try:
            cells, stop = await self._submit_ahead(cells)
            for position, planned in enumerate(cells):
                if stop is not None and not planned.folder.exists():
                    continue
                planned.folder.create()
                with planned.folder.locked():
                    updated_cell = _look_again(planned)
                    updated_cell = close_refused(updated_cell) if self._plan.accept_refusals else updated_cell
                    updated_cell = self._with_lender(updated_cell)
                    interrupted = await self._run_cell(updated_cell)
                    metrics = planned.cell.metrics
                    run = None if planned.pending or metrics else fresh_run(planned.folder)
                    self._runs[position] = run or score_cell(planned.folder, planned.question_set, code=metrics)
                self._observer.cell_ends(self._runs[position])
                if interrupted:
                    return Stop.INTERRUPTED
                if stop is None and self._is_pending() and (limit := self.spending.exhausted):
                    return limit
        finally:
            await self._local.aclose()
        return stop

    def _with_lender(self, planned: AnyCell) -> AnyCell:
        """Return the cell with a run that has answered its questions since it was planned, such as one of this plan."""
        if planned.lender is not None or planned.repeat or self._plan.fresh:
            return planned
        planned = with_lender(planned)
        if (line := describe_lent(planned)) is not None:
            _log.warning("medexam: %s", line)
        return planned

    async def _submit_ahead(self, cells: Sequence[AnyCell]) -> tuple[tuple[AnyCell, ...], Stop | None]:
        """Submit the cells whose models answer later, all but the first, so that a matrix takes as long as one cell."""
        ahead = list(cells)
        later = [index for index, planned in enumerate(cells) if planned.pending and planned.answers_later]
        for position in later[1:]:
            planned = cells[position]
            planned.folder.create()
            with planned.folder.locked():
                if await self._run_cell(_look_again(planned), ahead=True):
                    return tuple(ahead), Stop.INTERRUPTED
            ahead[position] = planned.updated()
        return tuple(ahead), None

    async def _run_cell(self, planned: AnyCell, *, ahead: bool = False) -> bool:
        """Ask the cell's pending questions, `ahead` without waiting for replies; return whether it was interrupted."""
        executor: Executor = self._local
        if planned.asks_model and planned.pending:
            executor = self._executor
            if planned.cell.model in self._changes:
                raise EngineError(
                    f"{planned.run_id}: not asked, since another model answers than at the start "
                    f"({self._changes[planned.cell.model]}); restore the first one and run the same command again"
                )
            await executor.prepare(planned, self._observer, combine_needs(self._plan.cells))
            if (info := executor.info(planned)) is not None:
                _check_planned(planned, info)
            # Counted now: since the plan was made, another process may have held the folder and left answers in it.
            answers = planned.answered or planned.folder.count_answers()
            accept, ways_out = self._plan.accept_model_change, self._plan.ways_out
            planned = admit_models(planned, executor, answers=answers, accept=accept, ways_out=ways_out)
            planned = take_lent(planned, None if info is None else info.identity)
        elif planned.lender is not None:
            planned = take_lent(planned, None)
            if planned.pending:
                return await self._run_cell(planned, ahead=ahead)
        folder = planned.folder
        # A run that was begun without its questions stays so.
        keeps_items = self._plan.keeps_items and (not folder.exists() or folder.read_record().keeps_items)
        begin_run(folder, replace(self._plan.record(planned), keeps_items=keeps_items), planned.question_set)
        before = folder.read_environment()
        if before and not planned.pending:
            return False
        if planned.run_id not in self._begun:
            # Before anything is asked as well: of a run that is killed, too, the folder says what it ran on.
            environment = _write_environment(planned, executor, before, Invocation())
            # MLflow knows a run by the moment at which it was begun.
            before = {"started_at": environment["started_at"], **before}
            self._begun.add(planned.run_id)
        try:
            planned = await self._look_up(planned, executor)
            if ahead:
                log = planned.folder.appending
                await self._local.ask_into(log, planned, self._observer, self.spending, ahead=True)
            else:
                await self._ask(planned, executor, before)
        except asyncio.CancelledError:
            # What is there is still scored: unless the cancellation is undone, every later wait would raise it again.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return True
        return False

    def _is_pending(self) -> bool:
        """Return whether a cell is not begun, or a question of a begun one is pending."""
        return len(self._runs) < len(self._plan.cells) or not all(run.complete for run in self._runs.values())

    async def _look_up(self, planned: AnyCell, executor: Executor) -> AnyCell:
        """Find what prompts show beside the pending questions; shards choose demonstrations by themselves."""
        if planned.retrieval is not None:
            self._observer.retrieval_starts(planned)
        stopping = threading.Event()

        def progress(count: int) -> None:
            if stopping.is_set():
                raise _LookUpStoppedError
            self._observer.passages_encoded(planned, count)

        nearest = not isinstance(executor, SpreadExecutor)
        looking = asyncio.create_task(asyncio.to_thread(planned.look_up, progress, nearest=nearest))
        try:
            # A thread cannot be cancelled, only asked to stop: unshielded, it would continue unseen and write to an
            # index that the next run opens.
            return await asyncio.shield(looking)
        except asyncio.CancelledError:
            stopping.set()
            with suppress(_LookUpStoppedError):
                await looking
            raise

    async def _ask(self, planned: AnyCell, executor: Executor, before: dict[str, Any]) -> None:
        self._observer.cell_starts(planned)
        await asyncio.to_thread(self.spending.begin_cell, planned)
        invocation, start, questions_before = Invocation(), time.monotonic(), self.spending.questions
        self.spending.further_tokens = invocation.further_tokens
        try:
            await executor.ask(planned, self._observer, self.spending)
            await self._look_at_models_again(planned, executor)
        finally:
            planned.folder.merge_shards()
            invocation.seconds, invocation.questions = (
                time.monotonic() - start,
                self.spending.questions - questions_before,
            )
            _write_environment(planned, executor, before, invocation)

    async def _look_at_models_again(self, planned: AnyCell, executor: Executor) -> None:
        """Note and say if another model answers by now than at the cell's start, which may have given its answers."""
        if planned.answerer is None or not (changes := await executor.find_changes(planned)):
            return
        self._changes[planned.cell.model] = described = "; ".join(changes)
        if (answers := planned.folder.count_answers() - planned.answered) > 0:
            note_doubt(planned.folder, planned.answerer, answers, changes)
            _log.warning(
                "medexam: warning: %s: another model answers now than at the start (%s), and it may have given %s of "
                "the answers; the run is not ranked: ask again with --fresh",
                planned.run_id,
                described,
                f"{answers:,}",
            )


def _look_again(planned: AnyCell) -> AnyCell:
    """Return the cell with what its folder, which is locked now, holds since it was planned."""
    merged = planned.folder.merge_shards()
    return read_run_again(
        replace(planned, pending=tuple(question for question in planned.pending if question.key not in merged))
    )


def _check_planned(planned: AnyCell, info: EngineInfo) -> None:
    """Raise `EngineError` where what answers is not what the plan knew: on a worker's machine, or changed meanwhile."""
    planned_model, identity = planned.identity["model"], info.identity
    for key, trait in (("weights", identity.content), ("script", identity.content), ("dtype", identity.dtype)):
        if key in planned_model and planned_model[key] != trait:
            raise EngineError(
                f"{planned.run_id}: the model that answers has the {key} {trait}, and the planned one "
                f"{planned_model[key]}; give all machines the same model (model.dtype sets the type), or run the "
                "same command again if the model was changed"
            )


def _write_environment(
    planned: AnyCell, executor: Executor, before: dict[str, Any], invocation: Invocation
) -> dict[str, Any]:
    """Write the run's environment and return it; `before` is what the run's earlier invocations wrote."""
    environment = build_environment(planned.cell.model, executor.info(planned), before, invocation)
    if (description := executor.describe()) is not None:
        environment["executor"] = description
    if planned.cell.asked_models:
        environment["models"] = {
            name: describe_further(model, executor.info(planned, name), (before.get("models") or {}).get(name), tokens)
            for name, model in planned.cell.asked_models.items()
            for tokens in [invocation.further_tokens.get(name, (0, 0))]
        }
    planned.folder.write_json(ENVIRONMENT, environment)
    return environment
