"""Carrying out an optimization by one of DSPy's optimizers, in a thread; its calls travel on the network loop.

Whatever ends it, a budget, Ctrl-C or a server that is gone, every reply and every trial so far is on disk, and the
best program with them.
"""

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from contextvars import copy_context
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from typing import Any, cast

import dspy
from dspy.teleprompt import COPRO, GEPA, BootstrapFewShot, BootstrapFewShotWithRandomSearch, LabeledFewShot, MIPROv2
from dspy.utils.exceptions import AdapterParseError, LMError

from medexam.errors import EngineError, MedExamError
from medexam.experiments.entry.progress import Bars
from medexam.experiments.optimize.meter import Meter, MeteredEngine, StoppedError
from medexam.experiments.optimize.optimization import PROMPT_MODELS, Optimization
from medexam.experiments.optimize.plan import GIVEN, OptimizationPlan, make_optimizer
from medexam.experiments.optimize.trials import NAME, Trials, score_output
from medexam.experiments.plan.lookup import NearestDemonstrations
from medexam.experiments.run.scheduler import GRACE_S, run_interruptibly
from medexam.experiments.store.environment import MODELS, admit
from medexam.plugins import load_object
from medexam.process import errors_only, gc_seldom, quiet_dspy
from medexam.programs.base import build_lm
from medexam.programs.wrapping import show_nearest
from medexam.serve import Engine, build_engine
from medexam.serve.contract import find_changes
from medexam.specs import EngineNeeds
from medexam.specs.base import OPTIMIZERS, short_name
from medexam.specs.experiment import OptimizerSpec
from medexam.specs.programs.needs import MODULE

_OURS: dict[str, type] = {
    "labeled": LabeledFewShot,
    "bootstrap": BootstrapFewShot,
    "mipro": MIPROv2,
    "copro": COPRO,
    "gepa": GEPA,
}
_NEVER, _THREADS = 10**9, 64
"""Failed questions after which DSPy would give up, and questions that wait for a server at once."""


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
    prompt_model = optimization.optimizer.prompt_model
    models = {MODELS: (cell.model, needs), PROMPT_MODELS: (prompt_model, EngineNeeds())}
    try:
        for file, (model, model_needs) in models.items():
            if model is None:
                continue
            bars.engine_starts(model)
            engines.append(engine := await build_engine(model, model_needs))
            identity = engine.info().identity
            answerer = admit(optimization.work, identity, answers=meter.spent["replies"], file=file)
            metered.append(MeteredEngine(engine, answerer, meter))
        lm, prompt_lm = build_lm(cell.model, metered[0]), build_lm(prompt_model or cell.model, metered[-1])
        if plan.validation.retrieval is not None:
            questions = [*plan.train.questions, *plan.validation.question_set.questions]
            await asyncio.to_thread(plan.validation.retrieval.fill, questions, None)
        trials = Trials(plan, optimization, metered[0].answerer, meter, bars)
        import_module("gepa.core.engine")  # DSPy imports it too late for its bar to be held back
        with (
            dspy.context(lm=lm, disable_history=True, num_threads=_THREADS, max_errors=_NEVER, trace=None),
            redirect_stdout(StringIO()),
            errors_only("dspy"),
            quiet_dspy("dspy.teleprompt.bootstrap", "gepa.core.engine"),
            gc_seldom(),
        ):
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


def compile_program(plan: OptimizationPlan, trials: Trials, prompt_lm: dspy.LM) -> None:
    """Try the program as written, and what the optimizer proposes; `prompt_lm` writes instructions.

    Raises `StoppedError` if the budget ends it, and `EngineError` if the model that writes keeps to no format.
    """
    trials.try_program("as written", trials.student)
    optimization, spec = plan.optimization, plan.optimization.optimizer
    candidates, kind = optimization.candidates, spec.kind
    train = list(trials.train)
    random.Random(spec.seed).shuffle(train)  # noqa: S311 - no secret

    def sample(number: int) -> list[dspy.Example]:
        """Draw the training questions that a candidate may try."""
        return random.Random(f"{spec.seed}:{number}").sample(train, min(spec.attempts, len(train)))  # noqa: S311

    # A question with its answer alone is no demonstration of what a module asks, or of reasoning.
    takes_labels = optimization.cell.program.asking.saved_as["kind"] not in (MODULE, "chain_of_thought")
    labeled = spec.demos * takes_labels
    arguments: dict[str, Any] = {
        "metric": score_output,
        **dict(zip(GIVEN, (sample(0), trials.validation, spec.seed, spec.demos, prompt_lm, prompt_lm), strict=True)),
    }
    if kind == "knn":
        program: Any = plan.program.reset_copy()
        for predictor in program.predictors():
            predictor.demos = list(train)
        finder = NearestDemonstrations(train, spec.demos, spec.encoder)
        trials.try_program(kind, trials.watch(show_nearest(program, finder)))
        return
    own_arguments: dict[str, Any] = {
        "max_bootstrapped_demos": spec.demos,
        "max_labeled_demos": labeled,
        "max_errors": _NEVER,
        "k": spec.demos,
        "num_candidates": max(2, candidates // 2),
        "num_trials": candidates - 1,
        "auto": None,
        "minibatch": False,
        "breadth": candidates,
        "depth": spec.rounds,
        "eval_kwargs": {},
        "program_aware_proposer": False,
        "max_metric_calls": candidates * len(trials.validation),
    }
    if kind == "random_search":
        _search_randomly(trials, spec, candidates, labeled, sample)
        return
    if kind == "mipro" and find_spec("optuna") is None:
        raise MedExamError("optimizer.kind 'mipro' needs optuna: pip install 'medexam[optimize]'")
    if kind in _OURS:
        arguments |= own_arguments | ({"trainset": trials.validation} if kind == "copro" else {})
    optimizer, sets = make_optimizer(spec, _OURS.get(kind) or load_object(spec.kind, OPTIMIZERS), arguments)
    with dspy.context(**{NAME: (short_name(kind), None)}):
        try:
            proposal = cast("Any", optimizer).compile(trials.student, **sets)
        except AdapterParseError as error:
            raise EngineError(
                f"the model that writes instructions does not follow their format ({str(error).splitlines()[0]}); "
                "name a larger one as optimizer.prompt_model, or choose optimizer.kind=random_search"
            ) from None
        except LMError as error:
            raise EngineError(str(error)) from error
        except MedExamError:
            raise
        except Exception as error:
            raise MedExamError(
                f"optimizer.kind {spec.kind}: {type(error).__name__}: {error}; "
                "`medexam run SPEC --debug` asks the program one question and prints every call"
            ) from error
    trials.try_program(short_name(kind), proposal)


def _search_randomly(
    trials: Trials, spec: OptimizerSpec, candidates: int, labeled: int, sample: Callable[[int], list[dspy.Example]]
) -> None:
    seeds = range(-2 if labeled else -1, candidates)[: candidates - 1]

    def search(seed: int) -> None:
        optimizer = BootstrapFewShotWithRandomSearch(
            score_output,
            max_bootstrapped_demos=spec.demos,
            max_labeled_demos=labeled,
            num_candidate_programs=candidates,
            max_errors=_NEVER,
        )
        name = {-2: "labeled", -1: "bootstrap"}.get(seed, f"random {seed}")
        with dspy.context(**{NAME: (name, seed - seeds[0] + 1)}):
            optimizer.compile(trials.student, trainset=sample(max(0, seed)), valset=trials.validation, restrict=[seed])

    # DSPy makes and scores the candidate of each seed in a thread of its own.
    with ThreadPoolExecutor(len(seeds), thread_name_prefix="candidate") as pool:
        for future in [pool.submit(copy_context().run, search, seed) for seed in seeds]:
            future.result()
