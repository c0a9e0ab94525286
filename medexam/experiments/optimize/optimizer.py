"""Carrying out an optimization: the optimizer works in a thread, its calls travel on the network loop.

Whatever ends it, a budget, Ctrl-C or a server that is gone, every reply and every trial so far is on disk, and the
best program with them.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import dspy

from medexam.errors import EngineError
from medexam.experiments.entry.progress import Bars
from medexam.experiments.optimize.compilers import compile_program
from medexam.experiments.optimize.meter import Meter, MeteredEngine, StoppedError
from medexam.experiments.optimize.optimization import PROMPT_MODELS, Optimization
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.optimize.trials import Trials
from medexam.experiments.run.scheduler import GRACE_S, run_interruptibly
from medexam.experiments.store.answerers import MODELS, admit
from medexam.programs.lm import build_lm
from medexam.serve import Engine, build_engine
from medexam.serve.contract import find_changes
from medexam.specs import EngineNeeds

_THREADS = 64
"""Questions of a program that wait for a server at once; the engine says how many of them it sends."""


def optimize(plan: OptimizationPlan, bars: Bars) -> Optimization:
    """Try what the plan's optimizer proposes, and write the best program; what was done before is not done again.

    Raises `EngineError` where a model cannot be had at all, and `RunFolderError` where the folder cannot be written or
    another model gave its replies.
    """
    optimization, folder = replace(plan.optimization), plan.optimization.work
    folder.create()
    with folder.locked():
        before = Optimization.load(folder) if folder.exists() else None
        if before is not None:
            if before.ending == "complete" and optimization.candidates <= before.candidates:
                return before
            optimization = replace(optimization, started_at=before.started_at, trials=before.trials)
        meter = Meter(folder.path / "cache", optimization.optimizer, before.seconds if before else 0.0)
        try:
            optimization.keep(meter)
            run_interruptibly(_optimize(plan, optimization, meter, bars))
            optimization.keep(meter)
        finally:
            meter.cache.disk_cache.close()
        return optimization


async def _optimize(plan: OptimizationPlan, optimization: Optimization, meter: Meter, bars: Bars) -> None:
    cell, engines, metered = optimization.cell, list[Engine](), list[MeteredEngine]()
    needs = EngineNeeds(logprobs=optimization.optimizer.metric == "log_probability")
    needs |= cell.program.asking.engine_needs
    models = {MODELS: (cell.model, needs), PROMPT_MODELS: (plan.prompt_model, EngineNeeds())}
    try:
        for file, (model, model_needs) in models.items():
            if model is None:
                continue
            bars.engine_starts(model)
            engines.append(engine := await build_engine(model, model_needs))
            told: dict[str, Any] = {"file": file, "ways_out": "or start over with --fresh"}
            identity = engine.info().identity
            answerer = admit(optimization.work, identity, answers=meter.spent["replies"], **told)
            metered.append(MeteredEngine(engine, answerer, meter))
        lm, prompt_lm = build_lm(cell.model, metered[0]), build_lm(plan.prompt_model or cell.model, metered[-1])
        if plan.validation.retrieval is not None:
            questions = [*plan.train.questions, *plan.validation.question_set.questions]
            await asyncio.to_thread(plan.validation.retrieval.fill, questions, None)
        trials = Trials(plan, optimization, metered[0].answerer, meter, bars)
        with dspy.context(lm=lm, disable_history=True, num_threads=_THREADS):
            work = asyncio.ensure_future(asyncio.to_thread(compile_program, plan, trials, prompt_lm))
            await _follow(work, optimization, meter, bars)
        if changes := [change for engine in engines for change in await find_changes(engine)]:
            optimization.ending = "failed"
            optimization.why = (
                f"another model answers now than at the start ({'; '.join(changes)}): start over with --fresh"
            )
    finally:
        for engine in engines:
            await engine.aclose()


async def _follow(work: "asyncio.Future[None]", optimization: Optimization, meter: Meter, bars: Bars) -> None:
    try:
        # A thread cannot be cancelled: the shield keeps its future, which ends once nothing more may be asked.
        await asyncio.shield(work)
        optimization.ending, optimization.why = "complete", None
    except StoppedError as stopped:
        if stopped.cause is not None:
            raise stopped.cause from stopped
        optimization.ending, optimization.why = stopped.ending, str(stopped)
    except EngineError as error:
        optimization.ending, optimization.why = "failed", str(error)
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None:
            # Else the next wait, for what is in flight, would be cancelled at once.
            task.uncancel()
        meter.stop("Ctrl-C", "interrupted")
        bars.stopping(len(meter.in_flight))
        optimization.why = "Ctrl-C"
        with suppress(asyncio.CancelledError):
            await asyncio.wait([work], timeout=GRACE_S)
        for call in meter.in_flight.values():
            call.cancel()
        # Why the thread ended is known; what it raises while it is stopped says nothing more.
        with suppress(BaseException):
            await work
