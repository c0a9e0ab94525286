"""One example through the user's module and metric, and the model that they ask: called as DSPy calls them.

A fault of a server fails the example, which is asked again. So does an exception of the user's code, unless such faults
are scored. A reply that could not be parsed is a result: the example is not answered. Calls of a model of DSPy's count
wherever a module makes them, at the model itself.
"""

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import dspy
from dspy.utils.exceptions import AdapterParseError
from dspy.utils.usage_tracker import UsageTracker

from medexam.dspy_internals import dspy_errors
from medexam.errors import EngineError, ProgramFaultError, SpecError
from medexam.experiments.evaluate.identity import describe_value, metric_name
from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.run.runner import Executor
from medexam.experiments.run.scheduler import Scheduler
from medexam.experiments.run.spending import Spending
from medexam.gc_pause import gc_seldom
from medexam.model_calls import Generation
from medexam.predictions import Reason
from medexam.predictions.calls import ModelCall
from medexam.predictions.core import MetricScore
from medexam.programs.kept import Calls, keep_call, recorded_calls
from medexam.programs.lm import EngineLM, held_models, in_bulk
from medexam.programs.module_faults import naming_faults
from medexam.programs.own import call_in_thread, call_module
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Task
from medexam.serve import EngineInfo
from medexam.serve.contract import find_changes
from medexam.serve.engines.dspy_model import IN_FLIGHT, LookedAtModel, describe_dspy_model
from medexam.specs import EngineNeeds
from medexam.specs.model import ModelSpec

if TYPE_CHECKING:
    from medexam.experiments.entry.progress import RunProgress

logger = logging.getLogger(__name__)
Metric = Callable[..., Any]
_TRANSPORT = (OSError, TimeoutError, asyncio.TimeoutError)
"""Exceptions of a model or tool that is out of reach, from the module or from a library."""


@dataclass
class Evaluated:
    """What came of an example in this process, as the objects that Python has."""

    prediction: Any
    score: Any
    """As the metric returned it; None if it was not called."""


@dataclass
class ExampleCalls:
    """What is called with each example."""

    program: Any
    metric: Metric
    failure_score: float | None
    """The score of an example whose module or metric raised; None: it is not scored."""
    provides_traceback: bool = False
    """Whether the traceback of an exception is logged as it comes."""
    examples: Mapping[str, dspy.Example] = field(default_factory=dict)
    """By key."""
    evaluated: dict[str, Evaluated] = field(default_factory=dict)
    """What came of each example, by key."""


class ExampleProgram(dspy.Module):
    """A user's module and metric as a program of ours: called with an example's `Task`, it gives a `ProgramOutput`."""

    def __init__(self, calls: ExampleCalls) -> None:
        super().__init__()
        self.calls = calls
        self._awaits_metric = inspect.iscoroutinefunction(calls.metric)

    async def acall(self, question: Task) -> ProgramOutput:
        """Evaluate one example; DSPy's own `acall` would tell its listeners of a module that is not the user's."""
        return await self.aforward(question)

    async def aforward(self, question: Task) -> ProgramOutput:
        """Evaluate one example."""
        calls, metric = self.calls, metric_name(self.calls.metric)
        # `dspy.Refine` and `dspy.BestOfN` write into the trace, which is None in bulk.
        trace = [] if dspy.settings.trace is None else dspy.settings.trace
        with recorded_calls() as recorded, dspy.context(trace=trace):
            try:
                prediction = await self._predict(calls.examples[question.key], recorded)
                score = await self._score(calls.examples[question.key], prediction)
            except AdapterParseError as error:
                # A reply that DSPy's adapter could not parse is a result.
                score = calls.failure_score or 0.0
                calls.evaluated[question.key] = Evaluated(dspy.Prediction(), score)
                last = recorded.generations[-1] if recorded.generations else None
                model = last.model if last else getattr(dspy.settings.lm, "model", "")
                ending = last.finish_reason if last else "stop"
                reply = Generation(error.lm_response or "", ending, model, None, None)
                return ProgramOutput(metric_score=MetricScore(metric=metric, value=score), generation=reply)
            except ProgramFaultError as fault:
                if calls.provides_traceback:
                    logger.error("%s: %s", question.key, fault.traceback or fault)
                if calls.failure_score is None or isinstance(fault.__cause__, _TRANSPORT):
                    raise
                calls.evaluated[question.key] = Evaluated(dspy.Prediction(), calls.failure_score)
                mark = MetricScore(metric=metric, value=calls.failure_score, feedback=f"{fault.kind}: {fault}")
                return ProgramOutput(reason=Reason.FAULTED, metric_score=mark)
        calls.evaluated[question.key] = Evaluated(prediction, score)
        fields = prediction.toDict() if isinstance(prediction, dspy.Example) else {"output": prediction}
        outputs = {name: _describe_output(value) for name, value in fields.items()}
        lines = [f"{name}: {value}" if len(outputs) > 1 else str(value) for name, value in outputs.items()]
        return ProgramOutput(text="\n".join(lines), outputs=outputs, metric_score=read_score(score, calls.metric))

    async def _predict(self, example: dspy.Example, recorded: Calls) -> Any:
        """Return what the module returns; raises `AdapterParseError` for a reply that could not be parsed."""
        unread: AdapterParseError | None = None
        with naming_faults(self.calls.program) as outputs:
            try:
                outputs.append(await call_module(self.calls.program, example.inputs()))
            except AdapterParseError as error:
                unread = error
        if unread is not None:
            raise unread
        if outputs[0] is None and recorded.fault is not None:
            # `dspy.BestOfN` and the user's own code may catch it; no answer for want of a server is a failure.
            with dspy_errors(getattr(dspy.settings.lm, "model", "")):
                raise recorded.fault
        return outputs[0]

    async def _score(self, example: dspy.Example, prediction: Any) -> Any:
        """Return what the metric returns; raises `ProgramFaultError` if it raises, or returns no number."""
        metric = self.calls.metric
        with naming_faults(metric) as scores:
            if self._awaits_metric:
                scores.append(await metric(example, prediction))
            else:
                # A metric may ask a model as well, which would wait for this very loop.
                scores.append(await call_in_thread(partial(metric, example, prediction)))
        if not scores:
            raise ProgramFaultError("AdapterParseError", "a reply that the metric asked for could not be parsed")
        read_score(scores[0], metric)
        return scores[0]


def read_score(score: Any, metric: Metric) -> MetricScore:
    """Read what a metric returned: a number, a bool, or a `dspy.Prediction` with a `score` and perhaps `feedback`.

    Raises `ProgramFaultError` for anything else.
    """
    value, feedback, details = score, None, {}
    if isinstance(score, dspy.Prediction) and "score" in score:
        fields = dict(score.items())
        value, feedback = fields.pop("score"), fields.pop("feedback", None)
        details = {name: _describe_output(part) for name, part in fields.items()}
    # A bool of numpy is no number to Python.
    value = value.item() if type(value).__module__ == "numpy" else value
    if not isinstance(value, Real) or not math.isfinite(value):
        raise ProgramFaultError(
            "MetricError",
            f"metric {metric_name(metric)} returned {score!r:.80}: return a finite number, a bool, or a "
            "dspy.Prediction with such a score",
        )
    number = value if isinstance(value, (bool, int)) else float(value)
    return MetricScore(
        metric=metric_name(metric), value=number, feedback=None if feedback is None else str(feedback), details=details
    )


def _describe_output(value: Any) -> Any:
    """Describe what a module or metric returned, as JSON; what nobody can know again by its text."""
    try:
        return describe_value(value)
    except SpecError:
        return repr(value)


def stored_score(mark: MetricScore) -> Any:
    """Return a stored score as the metric gave it."""
    if mark.feedback is None and not mark.details:
        return mark.value
    return dspy.Prediction(score=mark.value, feedback=mark.feedback, **mark.details)


class ObjectExecutor(Executor):
    """An executor for one model, which stays the script's own: it is neither built nor closed here."""

    def __init__(self, lm: Any, in_flight: int | None) -> None:
        """Ask `lm`, a model of DSPy's, or None if the program has its own.

        `in_flight` examples at once; None: as many as keep the model busy.
        """
        super().__init__()
        self._lm = lm
        self._in_flight = in_flight
        self._engine: Any = lm.live_engine if isinstance(lm, EngineLM) else None

    @property
    def concurrency(self) -> Callable[[], int]:
        """How many examples are in flight at once; it may change."""
        if self._in_flight is not None:
            return lambda: self._in_flight or 1
        return lambda: getattr(self._engine, "concurrency", IN_FLIGHT)

    async def prepare(
        self,
        planned: AnyCell,  # noqa: ARG002 - there is one model
        observer: "RunProgress",  # noqa: ARG002 - a look takes no time
        needs: Mapping[ModelSpec, EngineNeeds],  # noqa: ARG002 - the model is there
    ) -> None:
        """Look which model answers: it may have changed since the script made it, or was made from other code.

        Raises `EngineError` if an engine of ours reached another one when it was made.
        """
        if not isinstance(self._lm, EngineLM):
            self._engine = await asyncio.to_thread(LookedAtModel, self._lm)
        elif changes := await find_changes(self._engine):
            raise EngineError(
                f"{self._lm.model}: another model answers than when it was made ({'; '.join(changes)}); make it again"
            )

    def info(self, planned: AnyCell, name: str | None = None) -> EngineInfo:  # noqa: ARG002 - there is one model
        """Return what answers: what an engine of ours says of itself, else the model's name and replies."""
        info: EngineInfo = self._engine.info() if hasattr(self._engine, "info") else describe_dspy_model(self._lm)
        return info

    async def ask(
        self,
        planned: AnyCell,
        observer: "RunProgress",
        spending: Spending,
        log: Any = None,  # noqa: ARG002 - one process asks
    ) -> None:
        """Ask the pending examples."""
        program = planned.program.calls.program
        models = [self._lm, dspy.settings.lm, *held_models(program)]
        # A model of DSPy's keeps its history as the script says.
        settings = in_bulk(self._lm) if isinstance(self._lm, EngineLM) else dspy.context(lm=self._lm, trace=None)
        with (
            planned.folder.appending() as lines,
            settings,
            counted_calls(models, spending.add_call),
            gc_seldom(),
        ):
            await Scheduler(planned, lines, observer, spending, self.concurrency).run()

    async def find_changes(self, planned: AnyCell) -> list[str]:  # noqa: ARG002 - there is one model
        """Look again which model answers."""
        return await find_changes(self._engine)


Stray = Callable[[ModelCall], object]
"""What hears of a call that belongs to no example, such as one in a thread of the user's own."""
_STRAY = "_medexam_stray"


@contextmanager
def counted_calls(models: Iterable[Any], stray: Stray) -> Iterator[None]:
    """Have every call of these models kept for its example while the block runs; engines of ours keep theirs anyway.

    A reply from DSPy's cache is no call.
    """
    kinds = {id(lm): (lm, type(lm)) for lm in models if isinstance(lm, dspy.BaseLM) and not isinstance(lm, EngineLM)}
    for lm, kind in kinds.values():
        # The object itself: threads of the user's own, which know nothing of this block, hold the same one.
        lm.__class__ = _counted(cast("Any", kind))
        vars(lm)[_STRAY] = stray
    try:
        yield
    finally:
        for lm, kind in kinds.values():
            lm.__class__ = kind
            vars(lm).pop(_STRAY, None)


@cache
def _counted(kind: Any) -> type:
    """Return a class of models that tells of each call, and is the same in all else."""

    def telling(lm: Any) -> Any:
        stray = vars(lm).get(_STRAY, lambda _call: None)
        return dspy.context(usage_tracker=_Usage(dspy.settings.usage_tracker, stray))

    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        with telling(self):
            return kind.__call__(self, *arguments, **options)

    async def acall(self: Any, *arguments: Any, **options: Any) -> Any:
        with telling(self):
            return await kind.acall(self, *arguments, **options)

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__call__": call, "acall": acall}
    return type(kind.__name__, (kind,), names)


class _Usage(UsageTracker):
    """The usage of one call, told on to the tracker of the script as well."""

    def __init__(self, outer: UsageTracker | None, stray: Stray) -> None:
        super().__init__()
        self._outer = outer
        self._stray = stray

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Keep a call, of which a model need not report anything."""
        if self._outer is not None:
            self._outer.add_usage(lm, usage_entry)
        prompt, completion = usage_entry.get("prompt_tokens"), usage_entry.get("completion_tokens")
        call = ModelCall(model=lm, finish_reason="stop", prompt_tokens=prompt, completion_tokens=completion)
        if not keep_call(call):
            self._stray(call)
