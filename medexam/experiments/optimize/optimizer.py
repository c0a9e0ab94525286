"""Carrying out an optimization: the optimizer works in a thread, its questions travel on the network loop.

Whatever ends it, a budget, Ctrl-C or a server that is gone, every call and every trial so far is on disk, and the best
program with them.
"""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

import dspy

from medexam.errors import EngineError
from medexam.experiments.optimize.budget import Budget, StoppedError
from medexam.experiments.optimize.call_log import CallLog, CallUsage
from medexam.experiments.optimize.compilers import OptimizerInputs, compile_program
from medexam.experiments.optimize.evaluator import Evaluator, TrialObserver
from medexam.experiments.optimize.folder import CALLS, PROMPT_MODELS
from medexam.experiments.optimize.logged_engine import LoggedEngine
from medexam.experiments.optimize.optimization import (
    Optimization,
    OptimizationEnding,
    load_optimization,
    read_identities,
    write_optimization,
)
from medexam.experiments.optimize.outcome import write_outcome
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.run.scheduler import GRACE_S
from medexam.experiments.run.signals import run_interruptibly
from medexam.experiments.store.answerers import MODELS, admit
from medexam.gc_pause import gc_seldom
from medexam.library_logging import quiet_dspy
from medexam.model_identity import Answerer
from medexam.programs.lm import build_lm
from medexam.questions import AnswerKey, Question
from medexam.serve import Engine, build_engine
from medexam.serve.contract import find_changes
from medexam.specs import EngineNeeds, ModelSpec


class OptimizationObserver(TrialObserver, Protocol):
    """Watches an optimization, such as a progress bar."""

    def engine_starts(self, model: ModelSpec) -> None:
        """Take notice that a model is being loaded or a server probed; it may take a while."""

    def optimization_starts(self, plan: OptimizationPlan, budget: Budget) -> None:
        """Take notice that the optimizer begins; `budget` tells at any time what is spent."""


@dataclass
class _Course:
    """How an optimization goes, and what is written of it."""

    plan: OptimizationPlan
    log: CallLog
    budget: Budget
    started_at: str
    evaluator: Evaluator | None = None
    ending: OptimizationEnding = OptimizationEnding.COMPLETE
    why: str | None = None

    def keep(self) -> None:
        """Write what is known now, as of an optimization that did not end."""
        write_optimization(self.state(OptimizationEnding.INTERRUPTED))

    def state(self, ending: OptimizationEnding) -> Optimization:
        """Return what is known now."""
        plan, usage = self.plan, self.log.total
        trials = self.evaluator.ordered if self.evaluator else []
        return Optimization(
            folder=plan.folder,
            cell=plan.cell,
            optimizer=plan.optimizer,
            description=plan.description,
            identity=plan.identity,
            train=len(plan.exams.train.questions),
            validation=len(plan.exams.validation.questions),
            tested=len(plan.exams.tested.questions),
            candidates=plan.candidates,
            dropped=plan.exams.duplicates,
            started_at=self.started_at,
            ending=ending,
            why=self.why,
            seconds=round(self.budget.seconds, 2),
            spent=usage,
            beside=CallUsage(
                usage.calls - sum(trial.calls for trial in trials), usage.tokens - sum(trial.tokens for trial in trials)
            ),
            trials=tuple(trials),
            models=read_identities(plan.folder),
        )


def optimize(plan: OptimizationPlan, observer: OptimizationObserver) -> Optimization:
    """Try what the plan's optimizer proposes, and write the best program; what was done before is not done again.

    Raises `EngineError` where a model cannot be had at all, and `RunFolderError` where the folder cannot be written or
    another model gave its replies.
    """
    plan.folder.create()
    with plan.folder.locked():
        before = load_optimization(plan.folder) if plan.folder.exists() else None
        if before is not None and before.ending is OptimizationEnding.COMPLETE and plan.candidates <= before.candidates:
            return before
        log = CallLog(plan.folder.path / CALLS)
        total, seconds = log.total, before.seconds if before else 0.0
        budget = Budget(plan.optimizer, calls=total.calls, tokens=total.tokens, seconds=seconds)
        started_at = before.started_at if before else datetime.now(UTC).isoformat(timespec="seconds")
        course = _Course(plan, log, budget, started_at)
        if before is None:
            course.keep()
        with quiet_dspy():
            run_interruptibly(_optimize(observer, course))
        optimization = course.state(course.ending)
        write_outcome(optimization, plan)
        # Last: what it calls complete is never begun again, whatever is missing.
        write_optimization(optimization)
        return load_optimization(plan.folder)


def why_nothing_more(plan: OptimizationPlan, optimization: Optimization) -> str | None:
    """Explain why another budget tried nothing more; None where the budget is as before, or something is left."""
    candidates = optimization.candidates
    if optimization.ending is not OptimizationEnding.COMPLETE or plan.optimizer.budget == optimization.optimizer.budget:
        return None
    if candidates < plan.optimizer.programs:
        return (
            f"all {candidates} programs that its calls allowed were tried, and the budget now allows no more; "
            f"optimizer.max_calls={plan.calls.most(candidates + 1)} or no limit allows another"
        )
    return (
        f"all {candidates} programs that it asks for were tried, so another budget changes nothing; other "
        "optimizer.candidates, kind or seed make another optimization"
    )


async def _optimize(observer: OptimizationObserver, course: _Course) -> None:
    plan = course.plan
    model, prompt_model = plan.cell.model, plan.prompt_model
    engines: list[Engine] = []
    try:
        observer.engine_starts(model)
        extra_needs = EngineNeeds(logprobs=plan.optimizer.metric == "log_probability")
        engines.append(await build_engine(model, plan.spec.engine_needs | extra_needs))
        if prompt_model is not None:
            observer.engine_starts(prompt_model)
            engines.append(await build_engine(prompt_model))
        admitted = [_admit(course, *pair) for pair in zip(engines, (MODELS, PROMPT_MODELS), strict=False)]
        logged_engines = [
            LoggedEngine(engine, answerer, course.log, course.budget)
            for engine, answerer in zip(engines, admitted, strict=True)
        ]
        engine, writer = logged_engines[0], logged_engines[-1]
        lm, prompt_lm = build_lm(model, engine), build_lm(prompt_model or model, writer)
        if plan.validation.retrieval is not None:
            questions = [*plan.exams.train.questions, *plan.exams.validation.questions]
            await asyncio.to_thread(plan.validation.retrieval.fill, questions, None)
        evaluator = course.evaluator = Evaluator(
            plan, admitted[0], engine, course.log, course.budget, observer, course.keep
        )
        observer.optimization_starts(plan, course.budget)
        with dspy.context(lm=lm, disable_history=True), gc_seldom():
            await _compile(_inputs(plan, evaluator, prompt_lm), observer, course)
        if changes := [change for one in engines for change in await find_changes(one)]:
            course.ending = OptimizationEnding.FAILED
            course.why = f"another model answers now than at the start ({'; '.join(changes)}): start over with --fresh"
    finally:
        for open_engine in engines:
            await open_engine.aclose()


def _admit(course: _Course, engine: Engine, file: str) -> Answerer:
    """Admit the model of an engine; raises `RunFolderError` where another model gave the replies of the log."""
    identity, ways_out = engine.info().identity, "or start over with --fresh"
    admitted = admit(course.plan.folder, identity, answers=course.log.answered, file=file, ways_out=ways_out)
    # Every program is asked anew under the context of now; a prompt that was cut elsewhere is another call.
    return replace(admitted, shorter=False)


async def _compile(inputs: OptimizerInputs, observer: OptimizationObserver, course: _Course) -> None:
    """Let the optimizer work until it is through or something ends it."""
    budget, evaluator = course.budget, inputs.evaluator
    seconds_left = budget.seconds_left
    end = (
        None
        if seconds_left is None
        else asyncio.get_running_loop().call_later(max(0.0, seconds_left), evaluator.cancel)
    )
    work = asyncio.ensure_future(asyncio.to_thread(compile_program, inputs))
    try:
        # A thread cannot be cancelled: the shield keeps its future, which ends once its evaluations are cancelled.
        await asyncio.shield(work)
    except StoppedError as error:
        course.ending, course.why = OptimizationEnding.BUDGET, str(error)
    except EngineError as error:
        course.ending, course.why = OptimizationEnding.FAILED, str(error)
    except asyncio.CancelledError:
        # Ctrl-C cancels this task; the clock cancels evaluations alone, and that comes out of the thread.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # Else the next wait, for what is in flight, would be cancelled at once.
            task.uncancel()
            budget.stop("interrupted")
            observer.stopping(evaluator.in_flight)
            course.ending, course.why = OptimizationEnding.INTERRUPTED, "Ctrl-C"
            await _wind_down(work, evaluator)
        else:
            course.ending, course.why = OptimizationEnding.BUDGET, f"{budget.limits.max_minutes:g} minutes are over"
    finally:
        if end is not None:
            end.cancel()


async def _wind_down(work: "asyncio.Future[None]", evaluator: Evaluator) -> None:
    """Wait a little for what is in flight, then not at all."""
    with suppress(asyncio.CancelledError):
        await asyncio.wait([work], timeout=GRACE_S)
    evaluator.cancel()
    # Why the thread ended is known; what it raises while it is stopped says nothing more.
    with suppress(BaseException):
        await work


def _inputs(plan: OptimizationPlan, evaluator: Evaluator, prompt_lm: dspy.LM) -> OptimizerInputs:
    train = list(plan.exams.train.questions)
    random.Random(plan.optimizer.seed).shuffle(train)  # noqa: S311 - no secret
    return OptimizerInputs(
        program=plan.program,
        spec=plan.optimizer.model_copy(update={"candidates": plan.candidates}),
        train=_examples(train, plan.exams.train.golds),
        validation=_examples(plan.exams.validation.questions, plan.exams.validation.golds),
        labels=plan.spec.takes_labels,
        evaluator=evaluator,
        prompt_lm=prompt_lm,
    )


def _examples(questions: Sequence[Question], key: AnswerKey) -> list[dspy.Example]:
    def example(question: Question) -> dspy.Example:
        gold = key[question.key]
        others = {"others": gold.others} if gold.others else {}
        return dspy.Example(question=question, answer=gold.number, **others).with_inputs("question")

    return [example(question) for question in questions]
