# ruff: noqa: ARG002 - an executor of one model and one process needs less than others
"""One example through the user's module and metric, and the model that they ask: called as DSPy calls them.

A fault of a server fails the example, which is asked again. So does an exception of the user's code, unless such faults
are scored. A reply that could not be parsed is a result: the example is not answered. Calls of DSPy's models count
wherever a module or a metric makes them, as DSPy counts their tokens.
"""

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, cast

import dspy
from dspy.utils.exceptions import AdapterParseError
from dspy.utils.usage_tracker import UsageTracker

from medexam.errors import EngineError, ProgramFaultError, SpecError
from medexam.experiments.evaluate.identity import describe_value, label_of
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.run.runner import Executor
from medexam.experiments.run.scheduler import Scheduler
from medexam.experiments.run.spending import NO_LIMITS, Spending
from medexam.model_calls import Generation
from medexam.predictions import Reason
from medexam.predictions.prediction import MetricScore, ModelCall
from medexam.process import gc_seldom
from medexam.programs.base import OURS, EngineLM, KeptCalls, in_bulk, kept_calls, run_blocking
from medexam.programs.own import awaits_itself, call_in_thread, naming_faults
from medexam.questions import Task
from medexam.serve.contract import find_changes
from medexam.serve.engines.dspy_model import IN_FLIGHT, LookedAtModel
from medexam.specs import EngineNeeds
from medexam.specs.model import ModelSpec

if TYPE_CHECKING:
    from medexam.experiments.entry.progress import RunProgress

logger = logging.getLogger(__name__)


@dataclass
class ExampleProgram:
    """A user's module and metric as a program of ours, called with an example's `Task`."""

    program: Any
    metric: Callable[..., Any]
    failure_score: float | None
    """The score of an example whose module or metric raised; None: it is not scored."""
    provides_traceback: bool = False
    """Whether the traceback of an exception is logged as it comes."""
    examples: Mapping[str, dspy.Example] = field(default_factory=dict)
    """By key."""
    threads: ThreadPoolExecutor | None = None
    """Where modules and metrics that may block are called."""
    evaluated: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """The prediction and the score of each example that was asked in this process, as the objects that Python has."""

    async def acall(self, question: Task) -> dspy.Prediction:
        """Evaluate one example."""
        inputs = self.examples[question.key].inputs()
        with _counted_calls() as calls:
            predict: Callable[[], Any] = partial(self.program, **inputs)
            if awaits_itself(self.program):
                outcome = Future[Any]()
                try:
                    outcome.set_result(await self.program.acall(**inputs))
                except Exception as error:
                    outcome.set_exception(error)
                predict = outcome.result
            # A metric may ask a model as well, which would wait for this very loop.
            evaluate = partial(self._evaluate, question.key, predict, calls)
            return cast("dspy.Prediction", await call_in_thread(evaluate, self.threads))

    def _evaluate(self, key: str, predict: Callable[[], Any], calls: KeptCalls) -> dspy.Prediction:
        metric = label_of(self.metric)
        try:
            with naming_faults(self.program):
                prediction = predict()
            if prediction is None:
                calls.raise_fault()
            if dspy.settings.track_usage and isinstance(prediction, dspy.Prediction):
                prediction.set_lm_usage(dspy.settings.usage_tracker.get_total_tokens())
            with naming_faults(self.metric):
                score = self._score(self.examples[key], prediction)
            mark = _read_score(score, metric)
        except AdapterParseError as error:
            # A reply that DSPy's adapter could not parse is a result.
            score, model = self.failure_score or 0.0, getattr(dspy.settings.lm, "model", "")
            self.evaluated[key] = dspy.Prediction(), score
            unread = Generation(error.lm_response or "", "stop", model, None, None)
            # A model of ours has its reply among the calls that are kept.
            reply = None if any(call.text is not None for call in calls.all()) else unread
            return dspy.Prediction(metric_score=MetricScore(metric=metric, value=score), generation=reply)
        except ProgramFaultError as fault:
            if self.provides_traceback:
                logger.error("%s: %s", key, fault.traceback or fault)
            # A model or tool out of reach is asked again.
            if self.failure_score is None or isinstance(fault.__cause__, OSError):
                raise
            self.evaluated[key] = dspy.Prediction(), self.failure_score
            mark = MetricScore(metric=metric, value=self.failure_score, feedback=f"{fault.kind}: {fault}")
            return dspy.Prediction(reason=Reason.FAULTED, metric_score=mark)
        self.evaluated[key] = prediction, score
        fields = prediction.toDict() if isinstance(prediction, dspy.Example) else {"output": prediction}
        outputs = {name: _describe_output(value) for name, value in fields.items()}
        lines = [f"{name}: {value}" if len(outputs) > 1 else str(value) for name, value in outputs.items()]
        return dspy.Prediction(text="\n".join(lines), outputs=outputs, metric_score=mark)

    def _score(self, example: dspy.Example, prediction: Any) -> Any:
        try:
            score = self.metric(example, prediction)
            return run_blocking(score) if inspect.iscoroutine(score) else score
        except AdapterParseError as error:
            raise ProgramFaultError(
                "AdapterParseError", "a reply that the metric asked for could not be parsed"
            ) from error


def _read_score(score: Any, metric: str) -> MetricScore:
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
            f"metric {metric} returned {score!r:.80}: return a finite number, a bool, or a "
            "dspy.Prediction with such a score",
        )
    number = value if isinstance(value, (bool, int)) else float(value)
    feedback = None if feedback is None else str(feedback)
    return MetricScore(metric=metric, value=number, feedback=feedback, details=details)


def _describe_output(value: Any) -> Any:
    try:
        return describe_value(value)
    except SpecError:
        return repr(value)


class ObjectExecutor(Executor):
    """An executor for one model, which stays the script's own: it is neither built nor closed here."""

    def __init__(self, lm: Any, in_flight: int | None) -> None:
        """Ask `lm`, a model of DSPy's, or None if the program has its own.

        `in_flight` examples at once; None: as many as keep the model busy.
        """
        super().__init__()
        self._lm, self._in_flight = lm, in_flight

    async def prepare(
        self, planned: PlannedCell, observer: "RunProgress", needs: Mapping[ModelSpec, EngineNeeds]
    ) -> None:
        """Look which model answers: it may have changed since the script made it, or was made from other code.

        Raises `EngineError` if an engine of ours reached another one when it was made.
        """
        engine: Any = getattr(self._lm, "live_engine", None) or await asyncio.to_thread(LookedAtModel, self._lm)
        if isinstance(self._lm, EngineLM) and (changes := await find_changes(engine)):
            raise EngineError(
                f"{self._lm.model}: another model answers than when it was made ({'; '.join(changes)}); make it again"
            )
        self._engines[planned.cell.model] = engine

    async def ask(self, planned: PlannedCell, observer: "RunProgress", spending: Spending, log: Any = None) -> None:
        """Ask the pending examples."""
        program = cast("ExampleProgram", planned.program)
        in_flight = self._in_flight or int(getattr(self._engines[planned.cell.model], "concurrency", IN_FLIGHT))
        program.threads = ThreadPoolExecutor(in_flight, thread_name_prefix="medexam-example")
        # A model of DSPy's keeps its history as the script says.
        settings = in_bulk(self._lm) if isinstance(self._lm, EngineLM) else dspy.context()
        try:
            with planned.folder.appending() as lines, settings, gc_seldom():
                # Some wait for a thread, so that no thread waits for the loop; a limit counts all that are begun.
                is_limited = replace(spending.limits, failures=None) != NO_LIMITS
                waiting = 0 if is_limited or awaits_itself(program.program) else in_flight // 4
                await Scheduler(*(planned, lines, observer, spending), lambda: in_flight + waiting).run()
        finally:
            program.threads.shutdown(wait=False, cancel_futures=True)

    async def aclose(self) -> None:
        """Do nothing: the model is the script's."""


class _Usage(UsageTracker):
    """DSPy's count of tokens of one example, with the calls of models that report none."""

    def __deepcopy__(self, _: Any) -> Self:
        # DSPy's threads would have copies, which tell nobody.
        return self

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Note a call; a reply from DSPy's cache is none."""
        super().add_usage(lm, usage_entry)
        self.usage_data[lm] += [] if usage_entry else [{}]


@contextmanager
def _counted_calls() -> Iterator[KeptCalls]:
    """Keep every call of a model that the block makes, and tell a tracker of the script's of them."""
    usage, outer = _Usage(), dspy.settings.usage_tracker
    # `dspy.Refine` and `dspy.BestOfN` write into the trace.
    with kept_calls() as calls, dspy.context(trace=[], usage_tracker=usage):
        try:
            yield calls
        finally:
            for lm, entries in usage.usage_data.items():
                if outer is not None:
                    outer.usage_data[lm] += filter(None, entries)
                # Engines of ours keep theirs themselves.
                for entry in [] if lm.startswith(OURS) else entries:
                    counts = {name: entry.get(name) for name in ("prompt_tokens", "completion_tokens")}
                    calls.calls.append(ModelCall(model=lm, finish_reason="stop", **counts))
