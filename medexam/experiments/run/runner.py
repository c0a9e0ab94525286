"""Carrying out a plan: engines are built once and shared, cells run one after the other, folders are always left whole.

It knows nothing of the terminal and of MLflow: progress goes to an observer, tracking reads the run folders.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from typing import Any, Protocol

import dspy

from medexam.errors import EngineError
from medexam.experiments.plan.cells import AnyCell, Plan
from medexam.experiments.plan.passage_lookup import Retrieval
from medexam.experiments.report.derived import score_cell
from medexam.experiments.run.language_model import build_lm
from medexam.experiments.run.rereading import read_run_again
from medexam.experiments.run.scheduler import FailureBudget, QuestionObserver, ask
from medexam.experiments.run.signals import run_interruptibly
from medexam.experiments.store.answerers import admit
from medexam.experiments.store.environment import Invocation, build_environment
from medexam.experiments.store.run_folder import ENVIRONMENT
from medexam.experiments.store.stored_run import AnyRun
from medexam.gc_pause import gc_paused
from medexam.library_logging import truncation_unlogged
from medexam.serve import Engine, EngineInfo, build_engine
from medexam.serve.pool.prefix_cache import PrefixCount, count_prefixes
from medexam.specs import NO_NEEDS, EngineNeeds, ModelSpec
from medexam.specs.identity import digest

CONTROL_CONCURRENCY = 1
_SERVED = {"engine", "name", "path", "endpoints", "revision", "dtype"}
"""What tells the model of one cell from another's, in a server's cache."""


class Stop(StrEnum):
    """Why a run ended before everything was asked."""

    INTERRUPTED = "interrupted"
    """Ctrl-C."""
    FAILURES = "failures"
    """As many questions failed as were allowed to."""


class _StoppedError(Exception):
    """Ctrl-C came while an index was made."""


class RunObserver(QuestionObserver, Protocol):
    """Whoever watches a run, such as a progress bar."""

    def engine_starts(self, model: ModelSpec) -> None:
        """A model is being loaded or a server probed; it may take a while."""

    def retrieval_starts(self, planned: AnyCell) -> None:
        """The passages of a cell are looked up; it may take a while."""

    def passages_encoded(self, planned: AnyCell, done: int) -> None:
        """So many passages of the cell's corpus have a vector; called only while its index is made."""

    def cell_starts(self, planned: AnyCell) -> None:
        """A cell begins to ask its pending questions."""

    def cell_ends(self, run: AnyRun) -> None:
        """A cell is scored and its folder complete on disk."""


class _Engines:
    """One live engine for each model, closed together."""

    def __init__(self, cells: Sequence[AnyCell]) -> None:
        self._needs: dict[ModelSpec, EngineNeeds] = {}
        for cell in (planned.cell for planned in cells):
            self._needs[cell.model] = self.needs(cell.model) | cell.program.engine_needs
        self._built: dict[ModelSpec, Engine] = {}

    async def get(self, model: ModelSpec, observer: RunObserver) -> Engine:
        if model not in self._built:
            observer.engine_starts(model)
            self._built[model] = await build_engine(model, self.needs(model))
        return self._built[model]

    def needs(self, model: ModelSpec) -> EngineNeeds:
        """What the requests of all cells to a model hold."""
        return self._needs.get(model, NO_NEEDS)

    async def aclose(self) -> None:
        for engine in self._built.values():
            await engine.aclose()


def in_prefix_order(cells: Sequence[AnyCell]) -> list[int]:
    """The places of the cells, those that ask one model in the same words one after the other.

    Their prompts open with the same instructions and demonstrations, which a server then still has in its prefix cache.
    """
    alike: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        model = cell.cell.model.model_dump(mode="json", include=_SERVED)
        opening = digest({"model": model, "words": cell.identity.get("words")})
        alike.setdefault(opening, []).append(place)
    return [place for group in alike.values() for place in group]


class Executor(Protocol):
    """Whoever asks the questions of cells on other machines, in the place of this process."""

    async def prepare(self, planned: AnyCell, observer: RunObserver, needs: EngineNeeds) -> EngineInfo:
        """Have every worker reach the cell's model; what really runs there. Raises `EngineError` where none can."""
        ...

    async def ask(
        self, planned: AnyCell, observer: RunObserver, failures: FailureBudget, invocation: Invocation
    ) -> None:
        """Do what `scheduler.ask` does, and leave the answers in the parts of the run's folder."""
        ...

    def describe(self) -> dict[str, Any]:
        """What `environment.json` says of it."""
        ...


def run_plan(
    plan: Plan, observer: RunObserver, *, max_failures: int | None = None, executor: Executor | None = None
) -> tuple[list[AnyRun], Stop | None]:
    """Ask the pending questions of every cell; the stored runs, and why it stopped early, None where it did not.

    Ctrl-C begins no further question, waits a few seconds for those in flight, leaves every finished answer on disk and
    scores what is there; a second one does not wait. So do `max_failures` failed questions, over all cells together:
    those in flight are finished, and may fail as well. `executor` asks the models; None: this process does.
    """
    runs: dict[int, AnyRun] = {}
    stop: Stop | None
    try:
        with truncation_unlogged():
            stop = run_interruptibly(_run(plan, observer, runs, FailureBudget(max_failures), executor))
    except (KeyboardInterrupt, CancelledError):
        stop = Stop.INTERRUPTED
    return [runs[place] for place in sorted(runs)], stop


async def _run(
    plan: Plan, observer: RunObserver, runs: dict[int, AnyRun], failures: FailureBudget, executor: Executor | None
) -> Stop | None:
    """Fill `runs`, each at its cell's place in the plan."""
    engines = _Engines(plan.cells)
    try:
        for place in in_prefix_order(plan.cells):
            planned = plan.cells[place]
            planned.folder.create()
            with planned.folder.locked():
                merged = planned.folder.merge_shards()
                planned = replace(planned, pending=tuple(one for one in planned.pending if one.key not in merged))
                planned = read_run_again(planned)
                interrupted = await _run_cell(plan, planned, engines, observer, failures, executor)
                runs[place] = score_cell(planned.folder, planned.question_set)
            observer.cell_ends(runs[place])
            if interrupted:
                return Stop.INTERRUPTED
            if failures.exhausted:
                return Stop.FAILURES
    finally:
        await engines.aclose()
    return None


async def _run_cell(
    plan: Plan,
    planned: AnyCell,
    engines: _Engines,
    observer: RunObserver,
    failures: FailureBudget,
    executor: Executor | None,
) -> bool:
    """Ask the cell's pending questions; whether that was interrupted."""
    folder, model = planned.folder, planned.cell.model
    asked_by = executor if planned.asks_model and planned.pending else None
    if asked_by is not None:
        info: EngineInfo | None = await asked_by.prepare(planned, observer, engines.needs(model))
        engine = None
    else:
        engine = await engines.get(model, observer) if planned.asks_model and planned.pending else None
        info = engine.info() if engine else None
    if info is not None:
        _check_planned(planned, info)
        # Whoever held the folder meanwhile may have left answers in it.
        answers = planned.answered or folder.count_answers()
        accept = plan.accept_model_change
        admitted = admit(folder, info.identity, answers=answers, count_cut=folder.count_cut, accept=accept)
        planned = replace(planned, answerer=admitted)
    folder.write_record(plan.record(planned))
    before = folder.read_environment() if (folder.path / ENVIRONMENT).exists() else {}
    if before and not planned.pending:
        return False
    invocation = Invocation()
    _keep_environment(planned, info, before, invocation, asked_by)
    if planned.retrieval is not None:
        observer.retrieval_starts(planned)
        if not await _look_up(planned, planned.retrieval, observer):
            return True
        planned = replace(planned, pending=tuple(planned.retrieval.in_prefix_order(planned.pending)))
    if planned.nearest is not None:
        await asyncio.to_thread(planned.nearest.fill, planned.pending)
    observer.cell_starts(planned)
    begun, asked_before = time.monotonic(), failures.asked
    try:
        if asked_by is not None:
            await asked_by.ask(planned, observer, failures, invocation)
        else:
            await _ask_here(planned, engine, observer, failures, invocation)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return True
    finally:
        folder.merge_shards()
        invocation.seconds, invocation.asked = time.monotonic() - begun, failures.asked - asked_before
        _keep_environment(planned, engine.info() if engine else info, before, invocation, asked_by)
    return False


def _check_planned(planned: AnyCell, info: EngineInfo) -> None:
    """Raise `EngineError` where what answers is not what the plan knew: on a worker's machine, or changed meanwhile."""
    known, found = planned.identity["model"], info.identity
    for key, has in (("weights", found.content), ("script", found.content), ("dtype", found.dtype)):
        if key in known and known[key] != has:
            raise EngineError(
                f"{planned.run_id}: what answers has the {key} {has}, and the plan {known[key]}; make what model names "
                "alike on all machines (model.dtype says the type), or run the same again if it was changed meanwhile"
            )


async def _ask_here(
    planned: AnyCell, engine: Engine | None, observer: RunObserver, failures: FailureBudget, invocation: Invocation
) -> None:
    """Ask the cell's pending questions from this process; None stands for a program that asks no model."""
    with (
        planned.folder.appending() as log,
        dspy.context(lm=build_lm(planned.cell.model, engine) if engine else None, disable_history=True),
        gc_paused(),
    ):
        counted = await _count_prefixes(planned.cell.model, engine)
        await ask(
            planned,
            log,
            observer,
            failures,
            concurrency=lambda: engine.concurrency if engine else CONTROL_CONCURRENCY,
        )
        invocation.count_cached(counted, await _count_prefixes(planned.cell.model, engine))


def _keep_environment(
    planned: AnyCell,
    info: EngineInfo | None,
    before: dict[str, Any],
    invocation: Invocation,
    executor: Executor | None,
) -> None:
    """Write `environment.json`; `executor` None: this process asks."""
    environment = build_environment(planned.cell.model, info, before, invocation)
    if executor is not None:
        environment["executor"] = executor.describe()
    planned.folder.write_json(ENVIRONMENT, environment)


async def _count_prefixes(model: ModelSpec, engine: Engine | None) -> PrefixCount | None:
    """What the servers' prefix caches have counted so far; None where there are none that tell."""
    info = engine.info() if engine else None
    return await count_prefixes(info.endpoints, model.ca_bundle) if info and info.engine == "vllm" else None


async def _look_up(planned: AnyCell, retrieval: Retrieval, observer: RunObserver) -> bool:
    """Find the passages of the cell's pending questions, in a thread of its own; False where Ctrl-C came meanwhile."""
    stopping = threading.Event()

    def progress(done: int) -> None:
        if stopping.is_set():
            raise _StoppedError
        observer.passages_encoded(planned, done)

    filling = asyncio.create_task(asyncio.to_thread(retrieval.fill, planned.pending, progress))
    try:
        await asyncio.shield(filling)
    except asyncio.CancelledError:
        stopping.set()
        with suppress(_StoppedError):
            await filling
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return False
    return True
