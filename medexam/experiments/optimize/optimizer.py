"""Carrying out an optimization: the optimizer works in a thread, its calls travel on the network loop.

Whatever ends it, a budget, Ctrl-C or a server that is gone, every reply and every trial so far is on disk, and the
best program with them.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace

import dspy

from medexam.errors import EngineError
from medexam.experiments.optimize.compilers import compile_program
from medexam.experiments.optimize.meter import Meter, MeteredEngine, StoppedError
from medexam.experiments.optimize.optimization import PROMPT_MODELS, Optimization
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.optimize.progress import TrialProgress
from medexam.experiments.optimize.trials import Trials
from medexam.experiments.run.scheduler import GRACE_S
from medexam.experiments.run.signals import run_interruptibly
from medexam.experiments.store.answerers import MODELS, admit
from medexam.gc_pause import gc_seldom
from medexam.programs.lm import build_lm
from medexam.serve import Engine, build_engine
from medexam.serve.contract import find_changes
from medexam.specs import EngineNeeds

_THREADS = 64
"""Questions of a program that wait for a server at once; the engine says how many of them it sends."""


def optimize(plan: OptimizationPlan, progress: TrialProgress) -> Optimization:
    """Try what the plan's optimizer proposes, and write the best program; what was done before is not done again.

    Raises `EngineError` where a model cannot be had at all, and `RunFolderError` where the folder cannot be written or
    another model gave its replies.
    """
    optimization, folder = replace(plan.optimization), plan.optimization.folder
    folder.create()
    with folder.locked():
        before = Optimization.load(folder) if folder.exists() else None
        if before is not None:
            if before.ending == "complete" and optimization.candidates <= before.candidates:
                return before
            optimization = replace(optimization, started_at=before.started_at, trials=before.trials)
        meter = Meter(folder.cache, optimization.optimizer, before.seconds if before else 0.0)
        try:
            optimization.keep(meter)
            run_interruptibly(_optimize(plan, optimization, meter, progress))
            optimization.keep(meter)
        finally:
            meter.cache.disk_cache.close()
        return optimization


async def _optimize(plan: OptimizationPlan, optimization: Optimization, meter: Meter, progress: TrialProgress) -> None:
    cell, prompt_model = optimization.cell, plan.prompt_model
    engines: list[Engine] = []
    try:
        progress.engine_starts(cell.model)
        extra_needs = EngineNeeds(logprobs=optimization.optimizer.metric == "log_probability")
        engines.append(await build_engine(cell.model, cell.program.asking.engine_needs | extra_needs))
        if prompt_model is not None:
            progress.engine_starts(prompt_model)
            engines.append(await build_engine(prompt_model))
        answerers = [
            # Every program is asked anew under the context of now; a prompt that was cut elsewhere is another call.
            replace(
                admit(
                    optimization.folder,
                    engine.info().identity,
                    answers=meter.spent["replies"],
                    file=file,
                    ways_out="or start over with --fresh",
                ),
                shorter=False,
            )
            for engine, file in zip(engines, (MODELS, PROMPT_MODELS), strict=False)
        ]
        metered = [MeteredEngine(*pair, meter) for pair in zip(engines, answerers, strict=True)]
        lm, prompt_lm = build_lm(cell.model, metered[0]), build_lm(prompt_model or cell.model, metered[-1])
        if plan.validation.retrieval is not None:
            questions = [*plan.train.questions, *plan.validation.question_set.questions]
            await asyncio.to_thread(plan.validation.retrieval.fill, questions, None)
        trials = Trials(plan, optimization, answerers[0], meter, progress)
        progress.begin(optimization, meter)
        with dspy.context(lm=lm, disable_history=True, num_threads=_THREADS), gc_seldom():
            work = asyncio.ensure_future(asyncio.to_thread(compile_program, plan, trials, prompt_lm))
            await _follow(work, optimization, meter, progress)
        if changes := [change for engine in engines for change in await find_changes(engine)]:
            optimization.ending = "failed"
            optimization.why = (
                f"another model answers now than at the start ({'; '.join(changes)}): start over with --fresh"
            )
    finally:
        for engine in engines:
            await engine.aclose()


async def _follow(
    work: "asyncio.Future[None]", optimization: Optimization, meter: Meter, progress: TrialProgress
) -> None:
    """Wait until the optimizer is through or something ends it."""

    def time_over() -> None:
        meter.stop(f"{meter.limits.max_minutes:g} minutes are over", "budget")
        meter.cancel()

    loop = asyncio.get_running_loop()
    end = loop.call_later(max(0.0, meter.seconds_left), time_over) if meter.limits.max_minutes else None
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
        task = asyncio.current_task()
        if task is not None:
            # Else the next wait, for what is in flight, would be cancelled at once.
            task.uncancel()
        meter.stop("Ctrl-C", "interrupted")
        progress.stopping(len(meter.in_flight))
        optimization.why = "Ctrl-C"
        with suppress(asyncio.CancelledError):
            await asyncio.wait([work], timeout=GRACE_S)
        meter.cancel()
        # Why the thread ended is known; what it raises while it is stopped says nothing more.
        with suppress(BaseException):
            await work
    finally:
        if end is not None:
            end.cancel()
