"""One example through the user's module and metric: called as DSPy calls them, and what came out as values to keep.

A fault of a server fails the example, which is asked again. So does an exception of the user's code, unless such faults
are scored. A reply that could not be parsed is a result: the example is not answered.
"""

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from medexam.dspy_internals import dspy_errors
from medexam.errors import ProgramFaultError
from medexam.experiments.evaluate.identity import describe_value, metric_name
from medexam.model_calls import Generation
from medexam.predictions import Reason
from medexam.predictions.core import MetricScore
from medexam.programs.kept import Calls, recorded_calls
from medexam.programs.module_faults import naming_faults
from medexam.programs.own import call_in_thread, call_module
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Task

logger = logging.getLogger(__name__)
Metric = Callable[..., Any]
_TRANSPORT = (OSError, TimeoutError, asyncio.TimeoutError)
"""Exceptions of a model or tool that is out of reach, from the module or from a library."""


@dataclass(frozen=True)
class Unread:
    """A reply that DSPy's adapter could not parse."""

    reply: str


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
    examples: Mapping[str, dspy.Example]
    """By key."""
    provides_traceback: bool = False
    """Whether the traceback of an exception is logged as it comes."""
    priced: bool = False
    """Whether dollars are limited, so that the model's price has to be known."""
    price: tuple[float, float] | None = None
    """Dollars per million prompt and completion tokens; None: those of the price list, if `priced`."""
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
        calls, example = self.calls, self.calls.examples[question.key]
        settings: dict[str, Any] = {
            # `dspy.Refine` and `dspy.BestOfN` write into it, which is None in bulk.
            "trace": [] if dspy.settings.trace is None else dspy.settings.trace,
        }
        with recorded_calls() as recorded, dspy.context(**settings):
            try:
                prediction = await self._predict(example, recorded)
                score = None if isinstance(prediction, Unread) else await self._score(example, prediction)
            except ProgramFaultError as fault:
                if calls.provides_traceback:
                    logger.error("%s: %s", question.key, fault.traceback or fault)
                if calls.failure_score is None or isinstance(fault.__cause__, _TRANSPORT):
                    raise
                calls.evaluated[question.key] = Evaluated(dspy.Prediction(), calls.failure_score)
                mark = MetricScore(
                    metric=metric_name(calls.metric), value=calls.failure_score, feedback=f"{fault.kind}: {fault}"
                )
                return ProgramOutput(reason=Reason.FAULTED, metric_score=mark)
        if isinstance(prediction, Unread):
            score = calls.failure_score or 0.0
            calls.evaluated[question.key] = Evaluated(dspy.Prediction(), score)
            last = recorded.generations[-1] if recorded.generations else None
            model = getattr(dspy.settings.lm, "model", "")
            unread = Generation(
                prediction.reply, last.finish_reason if last else "stop", last.model if last else model, None, None
            )
            return ProgramOutput(metric_score=read_score(score, calls.metric), generation=unread)
        calls.evaluated[question.key] = Evaluated(prediction, score)
        outputs = _outputs(prediction)
        return ProgramOutput(
            text=_text(outputs),
            outputs=outputs,
            metric_score=read_score(score, calls.metric),
        )

    async def _predict(self, example: dspy.Example, recorded: Calls) -> Any:
        """Return what the module returns, or the reply that could not be parsed."""
        program, inputs = self.calls.program, example.inputs()
        with naming_faults(program) as outputs:
            try:
                outputs.append(await call_module(program, inputs))
            except AdapterParseError as error:
                return Unread(error.lm_response or "")
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
        details = {name: describe_value(part) for name, part in fields.items()}
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


def stored_score(mark: MetricScore) -> Any:
    """Return a stored score as the metric gave it."""
    if mark.feedback is None and not mark.details:
        return mark.value
    return dspy.Prediction(score=mark.value, feedback=mark.feedback, **mark.details)


def _outputs(prediction: Any) -> dict[str, Any]:
    """Return every field that a module returned, as JSON; one that returned no prediction has `output`."""
    fields = prediction.toDict() if isinstance(prediction, dspy.Example) else {"output": prediction}
    described: dict[str, Any] = describe_value(fields)
    return described


def _text(outputs: Mapping[str, Any]) -> str:
    """Write the outputs for tables; the value alone if there is one."""
    if len(outputs) == 1:
        return str(next(iter(outputs.values())))
    return "\n".join(f"{name}: {value}" for name, value in outputs.items())
