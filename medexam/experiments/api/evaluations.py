"""`medexam.Evaluate`: DSPy's evaluation of any module on any examples, as a stored run that can be continued."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dspy
from dspy.evaluate import EvaluationResult
from dspy.utils.callback import with_callbacks

from medexam.errors import EngineError, SpecError
from medexam.experiments.api.runs import Run
from medexam.experiments.entry.carry_out import send_to_mlflow, write_notice
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.evaluate.asking import Evaluated, ExampleCalls, ObjectExecutor, stored_score
from medexam.experiments.evaluate.identity import metric_name
from medexam.experiments.evaluate.planning import plan_evaluation
from medexam.experiments.run.runner import Runner
from medexam.experiments.run.spending import NO_LIMITS, Limits, Stop
from medexam.experiments.store.run_folder import default_runs_dir
from medexam.experiments.store.stored_run import StoredRun
from medexam.experiments.track import track_runs
from medexam.library_logging import errors_only
from medexam.measures.results import Interval
from medexam.predictions import Status


class Evaluation(EvaluationResult):
    """A `dspy.EvaluationResult`, with the stored run and what its score does not count.

    `score` is the mean over the scored examples, times 100, rounded to two digits. `results` holds each example with
    its prediction and its score; an example that is pending has an empty prediction and the score None.
    """

    def __init__(
        self, score: float, results: list[tuple[Any, Any, Any]], run: Run, faults: int, stop: Stop | None
    ) -> None:
        super().__init__(score=score, results=results)
        measure = next(iter(run.metrics.measures.values()))
        interval: Interval | None = measure.interval
        self["run"] = run
        self["n"] = run.n
        self["pending"] = len(results) - run.n
        self["faults"] = faults
        self["interval"] = interval and tuple(round(100 * end, 2) for end in interval)
        self["stop"] = stop and stop.value

    def __repr__(self) -> str:
        pending = f", pending={self.pending}" if self.pending else ""
        faults = f", faults={self.faults}" if self.faults else ""
        return (
            f"Evaluation(score={self.score}, n={self.n}, interval={self.interval}{pending}{faults}, run={self.run.id})"
        )


class Evaluate(dspy.Evaluate):
    """Evaluates modules on examples as `dspy.Evaluate` does, and keeps each answer as it comes.

    The same module, model, metric and example are never asked twice: the next call continues where the last one
    stopped, also after the process was killed. An example that failed for want of a server, or whose module or metric
    raised, is pending and has no score; `failure_score` scores an exception as `dspy.Evaluate` does. A reply that could
    not be parsed scores `failure_score`, 0.0 by default.
    """

    def __init__(
        self,
        *,
        devset: Sequence[dspy.Example],
        metric: Callable[..., Any] | None = None,
        name: str = "evaluation",
        failure_score: float | None = None,
        limits: Limits = NO_LIMITS,
        price: tuple[float, float] | None = None,
        runs_dir: str | Path | None = None,
        fresh: bool = False,
        track: bool | str = True,
        **settings: Any,
    ) -> None:
        """Take what a run has; `settings` are further arguments of `dspy.Evaluate`.

        `name` names the runs. `num_threads` is how many examples are in flight; None: as many as keep the model busy.
        `max_errors` is how many may fail, as `limits.failures` is. `limits` end the asking of one call, such as
        `medexam.Limits(calls=1000, minutes=10)`. `price` is what the model costs, in dollars per million prompt and
        completion tokens; None: as litellm's list says, where dollars are limited. `fresh` asks anew, in a run
        beside the others. `track` is an MLflow store to send each run to; True: that of
        `MLFLOW_TRACKING_URI`, or the one beside the runs; False: none.
        """
        score = 0.0 if failure_score is None else failure_score
        super().__init__(devset=list(devset), metric=metric, failure_score=score, **settings)
        if self.max_errors is not None and limits.failures is None:
            limits = Limits(**{**vars(limits), "failures": self.max_errors})
        self.name = name
        self.fault_score = failure_score
        self._limits = limits
        self._price = price
        self._runs_dir = default_runs_dir() if runs_dir is None else Path(runs_dir)
        self._fresh = fresh
        self._track = track

    def __call__(
        self,
        program: Any,
        metric: Callable[..., Any] | None = None,
        devset: Sequence[dspy.Example] | None = None,
        num_threads: int | None = None,
        display_progress: bool | None = None,
        display_table: bool | int | None = None,
        callback_metadata: dict[str, Any] | None = None,
        **files: str | None,
    ) -> Evaluation:
        """Evaluate `program`; an argument that is given replaces the object's own.

        Raises `MedExamError` for whatever a user can cure, and `KeyboardInterrupt` once the answers are kept.
        """
        metric = metric or self.metric
        evaluation: Evaluation = self._evaluate_heard(
            program=program,
            metric=metric,
            devset=self.devset if devset is None else list(devset),
            num_threads=num_threads or self.num_threads,
            display_progress=self.display_progress if display_progress is None else display_progress,
            callback_metadata=callback_metadata,
        )
        files = {name: files.get(name) or getattr(self, name) for name in ("save_as_csv", "save_as_json")}
        display_table = self.display_table if display_table is None else display_table
        if display_table is not False or any(files.values()):
            _show(evaluation, metric, display_table=display_table, **files)
        return evaluation

    def _evaluate(
        self,
        program: Any,
        metric: Callable[..., Any] | None,
        devset: Sequence[dspy.Example],
        num_threads: int | None,
        display_progress: bool,
        callback_metadata: dict[str, Any] | None,  # noqa: ARG002 - DSPy's callbacks read it
    ) -> Evaluation:
        if metric is None or not devset:
            raise SpecError(f"medexam.Evaluate: {'metric is missing' if metric is None else 'devset has no example'}")
        calls = ExampleCalls(program, metric, self.fault_score, bool(self.provide_traceback))
        price: Any = self._price or ("list" if self._limits.cost is not None else None)
        plan, keys = plan_evaluation(
            self.name, calls, dspy.settings.lm, devset, runs_dir=self._runs_dir, fresh=self._fresh, price=price
        )
        for line in plan.news:
            write_notice(line)
        with RunProgress(disable=not display_progress) as bar:
            executor = ObjectExecutor(dspy.settings.lm, num_threads)
            (stored,), stop = Runner(plan, bar, limits=self._limits, executor=executor).run()
        send_to_mlflow(track_runs, [stored], track=self._track, runs_dir=plan.runs_dir)
        if stop is Stop.INTERRUPTED:
            raise KeyboardInterrupt
        return _collect(keys, calls, devset, stored, stop)

    # Tells DSPy's callbacks of an evaluation, as its own `Evaluate` does.
    _evaluate_heard = with_callbacks(_evaluate)

    async def acall(self, program: Any, **arguments: Any) -> Evaluation:
        """Evaluate as a call does, without blocking the event loop."""
        return await asyncio.to_thread(partial(self, program, **arguments))


def _show(evaluation: Evaluation, metric: Any, **wishes: Any) -> None:
    """Have DSPy draw its table and write its files of what is scored: it is called with known answers."""
    scored = [row for row in evaluation.results if row[2] is not None]
    answers = iter(scored)
    scores: list[Any] = []

    def answer(**_: Any) -> Any:
        _, prediction, score = next(answers)
        scores.append(score)
        return prediction

    def score(*_: Any) -> Any:
        return scores[-1]

    score.__name__ = metric_name(metric)
    again = dspy.Evaluate(devset=[row[0] for row in scored], metric=score, num_threads=1)
    with dspy.context(callbacks=[]), errors_only("dspy"):
        again(answer, **wishes)


def _collect(
    keys: Sequence[str], calls: ExampleCalls, examples: Sequence[dspy.Example], stored: StoredRun, stop: Stop | None
) -> Evaluation:
    """Return the result, of objects of this process, else of what the folder holds; say what is pending."""
    predictions = stored.folder.read_predictions()
    results = []
    for key, example in zip(keys, examples, strict=True):
        kept = predictions.get(key)
        if kept is None or kept.status is Status.FAILED:
            result = Evaluated(dspy.Prediction(), None)
        elif key in calls.evaluated:
            result = calls.evaluated[key]
        else:
            score = 0.0 if kept.metric_score is None else stored_score(kept.metric_score)
            result = Evaluated(dspy.Prediction(**(kept.outputs or {})), score)
        results.append((example, result.prediction, result.score))
    scores = [score for _, _, score in results if score is not None]
    run_id, failures = stored.folder.name, stored.failures
    if not scores:
        failure = next((failure["example"] for failure in failures), "nothing was asked")
        raise EngineError(f"{run_id}: no example is scored: {failure}; the same call asks them again")
    faults = sum(failure["questions"] for failure in failures if failure["boundary"] == "client")
    faults += sum(bool(predictions[key].reason == "faulted") for key in keys if key in predictions)
    evaluation = Evaluation(round(100 * sum(scores) / len(scores), 2), results, Run(stored), faults, stop)
    if evaluation.pending:
        kinds = "; ".join(f"{each['questions']} {each['kind']}: {each['example']:.200}" for each in failures)
        why = f" ({kinds or stop})" if kinds or stop else ""
        write_notice(
            f"{run_id}: {evaluation.pending} of {len(keys)} examples are pending{why}: the same call asks them"
        )
    return evaluation
