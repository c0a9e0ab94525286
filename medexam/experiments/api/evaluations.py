"""`medexam.Evaluate`: DSPy's evaluation of any module on any examples, as a stored run that can be continued."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import dspy
from dspy.evaluate import EvaluationResult

from medexam.datasets.examples import EXAMPLES_FILE, ExampleRecord, build_example_set, read_examples
from medexam.errors import EngineError, SpecError
from medexam.experiments.api.runs import Run
from medexam.experiments.entry.carry_out import send_to_mlflow
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.evaluate.asking import ExampleProgram, ObjectExecutor
from medexam.experiments.evaluate.identity import describe_value, label_of, model_part
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.plan.plans import Plan
from medexam.experiments.run.runner import Runner
from medexam.experiments.run.spending import NO_LIMITS, Limits, Stop
from medexam.experiments.store.run_folder import RunFolder, default_runs_dir
from medexam.experiments.store.stored_run import StoredRun
from medexam.plugins import name_object
from medexam.predictions import Status
from medexam.process import errors_only
from medexam.specs import CellSpec
from medexam.specs.base import validate
from medexam.specs.dataset import EXAMPLES
from medexam.specs.identity import READER_VERSION, digest
from medexam.text import print_notice

_SETTINGS = ("adapter", "rm", "interpreter_factory", "allow_tool_async_sync_conversion")
"""What `dspy.configure` may say, beside the model, that answers depend on."""


class Evaluation(EvaluationResult):
    """A `dspy.EvaluationResult`, with the stored run and what its score does not count.

    `score` is the mean over the scored examples, times 100, rounded to two digits. `results` holds each example with
    its prediction and its score; an example that is pending has an empty prediction and the score None.
    """

    def __repr__(self) -> str:
        others = "".join(f", {name}={self[name]}" for name in ("pending", "faults") if self[name])
        return f"Evaluation(score={self.score}, n={self.n}, interval={self.interval}{others}, run={self.run.id})"


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
        completion tokens, which a limit of dollars needs. `fresh` asks anew, in a run beside the others. `track` is an
        MLflow store to send each run to; True: that of `MLFLOW_TRACKING_URI`, or the one beside the runs; False: none.
        """
        super().__init__(devset=list(devset), metric=metric, failure_score=failure_score or 0.0, **settings)
        if limits.failures is None:
            limits = replace(limits, failures=self.max_errors)
        self.name = name
        self._fault_score, self._limits, self._price = failure_score, limits, price
        self._runs_dir = Path(runs_dir or default_runs_dir())
        self._fresh, self._track = fresh, track

    def __call__(
        self,
        program: Any,
        metric: Callable[..., Any] | None = None,
        devset: Sequence[dspy.Example] | None = None,
        num_threads: int | None = None,
        display_progress: bool | None = None,
        display_table: bool | int | None = None,
        **files: str | None,
    ) -> Evaluation:
        """Evaluate `program`; an argument that is given replaces the object's own.

        Raises `MedExamError` for whatever a user can cure, and `KeyboardInterrupt` once the answers are kept.
        """
        metric, devset = metric or self.metric, self.devset if devset is None else list(devset)
        if metric is None or not devset:
            raise SpecError(f"medexam.Evaluate: {'metric is missing' if metric is None else 'devset has no example'}")
        example_program = ExampleProgram(program, metric, self._fault_score, bool(self.provide_traceback))
        planned = self._plan(example_program, dspy.settings.lm, devset)
        plan = Plan(self.name, (planned,), self._runs_dir)
        is_quiet = not (self.display_progress if display_progress is None else display_progress)
        from medexam.experiments.track import track_runs

        with RunProgress(disable=is_quiet) as bar:
            executor = ObjectExecutor(dspy.settings.lm, num_threads or self.num_threads)
            (stored,), stop = Runner(plan, bar, limits=self._limits, executor=executor).run()
        send_to_mlflow(track_runs, [stored], track=self._track, runs_dir=plan.runs_dir)
        if stop is Stop.INTERRUPTED:
            raise KeyboardInterrupt
        evaluation = _collect(example_program, stored, stop)
        files = {name: files.get(name) or getattr(self, name) for name in ("save_as_csv", "save_as_json")}
        display_table = self.display_table if display_table is None else display_table
        if display_table is not False or any(files.values()):
            _show(evaluation, metric, display_table=display_table, **files)
        return evaluation

    async def acall(self, program: Any, **arguments: Any) -> Evaluation:
        """Evaluate as a call does, without blocking the event loop."""
        return await asyncio.to_thread(partial(self, program, **arguments))

    def _plan(self, asked: ExampleProgram, lm: Any, devset: Sequence[dspy.Example]) -> PlannedCell:
        """Plan what evaluating would do, and write the examples, which `asked` learns, into its folder.

        The last run of the same name, module, model and metric is continued, unless `fresh`. Raises `RunBusyError` if
        another process writes it.
        """
        records = _make_records(devset)
        asked.examples = dict(zip((record.key for record in records), devset, strict=True))
        settings = {name: dspy.settings.get(name) for name in _SETTINGS}
        parts = {"program": asked.program, "metric": asked.metric}
        identity: dict[str, Any] = {
            **{name: {"name": label_of(one), "digest": digest(describe_value(one))} for name, one in parts.items()},
            "model": describe_value(lm),
            "settings": {name: describe_value(value) for name, value in settings.items() if value is not None},
            "failure_score": asked.failure_score,
            "dspy": dspy.__version__,
            "reader_version": READER_VERSION,
        }
        called, run_digest = label_of(asked.program), digest(identity)
        model = getattr(lm, "model", "").rsplit("/", 1)[-1] or "own_models"
        folder = RunFolder.last_or_new([self.name, model, called], run_digest, self._runs_dir, fresh=self._fresh)
        folder.create()
        path, by_key = folder.path / EXAMPLES_FILE, {record.key: record for record in records}
        with folder.locked():
            stored = read_examples(path) if path.exists() else {}
            if by_key.keys() - stored.keys():
                folder.write(EXAMPLES_FILE, "".join(record.to_line() for record in (stored | by_key).values()))
        cell = validate(
            CellSpec,
            {
                "name": self.name,
                "dataset": {"kind": EXAMPLES, "name": self.name, "path": path.absolute()},
                "model": model_part(lm) | ({} if self._price is None else {"price": self._price}),
                "program": {"kind": name_object(asked.program, called, identity["program"]["digest"])},
            },
        )
        items = build_example_set(cell.dataset, by_key.values(), "")
        return PlannedCell(cell, items, cast("Any", asked), identity, folder, fresh=self._fresh).updated()


def _make_records(devset: Sequence[dspy.Example]) -> list[ExampleRecord]:
    """Describe examples as JSON under keys of their content."""
    times, records = Counter[str](), list[ExampleRecord]()
    for example in devset:
        inputs, labels = example.inputs().toDict(), example.labels().toDict()
        content = {"inputs": describe_value(inputs), "labels": describe_value(labels)}
        key = digest(content, 16)
        times[key] += 1
        records.append(ExampleRecord(key if times[key] == 1 else f"{key}-{times[key]}", **content))
    return records


def _show(evaluation: Evaluation, metric: Any, **wishes: Any) -> None:
    """Have DSPy draw its table and write its files of what is scored: it is called with known answers."""
    scored = [row for row in evaluation.results if row[2] is not None]
    predictions, scores = iter([row[1] for row in scored]), iter([row[2] for row in scored])
    stored_score = lambda *_: next(scores)  # noqa: E731
    stored_score.__name__ = label_of(metric)
    again = dspy.Evaluate(devset=[row[0] for row in scored], metric=stored_score, num_threads=1)
    with dspy.context(callbacks=[]), errors_only("dspy"):
        again(lambda **_: next(predictions), **wishes)


def _collect(asked: ExampleProgram, stored: StoredRun, stop: Stop | None) -> Evaluation:
    lines, results = stored.folder.read_predictions(), list[tuple[Any, Any, Any]]()
    for key, example in asked.examples.items():
        line = lines.get(key)
        if line is None or line.status is Status.FAILED:
            output, score = dspy.Prediction(), None
        elif key in asked.evaluated:
            output, score = asked.evaluated[key]
        else:
            mark, output = line.metric_score, dspy.Prediction(**(line.outputs or {}))
            score = 0.0 if mark is None else mark.value
            if mark is not None and (mark.feedback is not None or mark.details):
                score = dspy.Prediction(score=mark.value, feedback=mark.feedback, **mark.details)
        results.append((example, output, score))
    scores = [score for _, _, score in results if score is not None]
    run, failures = Run(stored), stored.failures
    kinds = "; ".join(f"{each['questions']} {each['kind']}: {each['example']:.200}" for each in failures)
    if not scores:
        raise EngineError(f"{run.id}: no example is scored: {kinds or 'nothing was asked'}; the same call asks them")
    evaluation = Evaluation(round(100 * sum(scores) / len(scores), 2), results)
    interval = next(iter(run.metrics.measures.values())).interval
    faults = sum(failure["questions"] for failure in failures if failure["boundary"] == "client")
    fields = {
        "run": run,
        "n": run.n,
        "pending": len(results) - run.n,
        "faults": faults + sum(line.reason == "faulted" for key, line in lines.items() if key in asked.examples),
        "interval": interval and tuple(round(100 * end, 2) for end in interval),
        "stop": stop and stop.value,
    }
    for name, value in fields.items():
        evaluation[name] = value
    if evaluation.pending:
        why = f" ({kinds or stop})" if kinds or stop else ""
        print_notice(
            f"{run.id}: {evaluation.pending} of {len(results)} examples are pending{why}: the same call asks them"
        )
    return evaluation
