"""Runs and optimizations in Python: plan, carry out, read, compare and report them; each shows itself as tables."""

import sys
from collections import UserList
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias, overload

from pydantic_core import to_jsonable_python

from medexam.errors import MedExamError, RunFolderError, SpecError
from medexam.experiments.entry.carry_out import carry_out, plan_spec, send_to_mlflow
from medexam.experiments.entry.progress import Bars
from medexam.experiments.plan.plans import Plan
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.run.spending import NO_LIMITS, Limits
from medexam.experiments.store.run_folder import PARQUET, RunFolder, default_runs_dir, find_runs, runs_inside
from medexam.experiments.store.stored_run import StoredRun
from medexam.kept import reads_kept
from medexam.model_calls import Reading
from medexam.predictions import Prediction
from medexam.specs import load_document
from medexam.specs.base import Spec
from medexam.specs.loading import SpecSource
from medexam.text import print_notice

if TYPE_CHECKING:
    import dspy
    import pandas as pd

    from medexam.experiments.compare.result import Comparison
    from medexam.experiments.entry.report import Report
    from medexam.experiments.optimize.optimization import Optimization
    from medexam.experiments.report.leaderboard import Leaderboard


OnePart: TypeAlias = "str | Mapping[str, Any] | Spec | dspy.Module | dspy.BaseLM"
PartSource: TypeAlias = "OnePart | Sequence[OnePart] | None"
"""A part of a spec: a text for its first field, a mapping of the fields that change, or a spec. `program` takes a
`dspy.Module` too, and `model` a `dspy.LM`. A list of them is an axis of the matrix. A mapping that names another data
set, program or engine is a whole part."""


def gather(overrides: Mapping[str, Any], **parts: "PartSource | int") -> dict[str, Any]:
    """Map dotted keys to plain values, from keywords in which two underscores stand for a dot; None is left out."""
    settings = {name: part for name, part in parts.items() if part is not None}
    settings |= {name.replace("__", "."): value for name, value in overrides.items()}
    return {
        name: value if isinstance(value, Spec) else to_jsonable_python(value, fallback=_name_object)
        for name, value in settings.items()
    }


def _name_object(value: Any) -> Any:
    """Return what names a module or a model that the script has made."""
    dspy = sys.modules.get("dspy")
    if dspy is None or not isinstance(value, (dspy.Module, dspy.BaseLM)):
        raise SpecError(f"{value!r:.80} cannot be part of a spec")
    from medexam.experiments.evaluate.identity import model_part, program_part

    return program_part(value) if isinstance(value, dspy.Module) else model_part(value)


class Predictions(dict[str, Prediction]):
    """The last prediction of each question of a run, by the question's key."""

    def __init__(self, folder: RunFolder) -> None:
        stored = folder.read_predictions()
        super().__init__((key, stored[key]) for key in folder.read_record().questions if key in stored)
        self._folder = folder

    def __repr__(self) -> str:
        return f"<{len(self)} predictions of {self._folder.name}; to_pandas() gives a table>"

    def to_pandas(self) -> "pd.DataFrame":
        """Read a row a question: exam, gold, answer, whether right, reply, tokens; `right` averages to the accuracy."""
        import pandas as pd

        return pd.read_parquet(self._folder.path / PARQUET)


class Run(Displayed):
    """One stored run with its scores."""

    def __init__(self, stored: StoredRun) -> None:
        self.stored = stored
        """The run as reports read it."""
        self.id = stored.folder.name
        """The name of its folder."""
        self.folder = stored.folder.path
        """Where its files lie."""
        self.program = stored.program
        """The program's short name."""
        self.model = stored.model
        """The model that really answered; None for a program that asks none."""
        self.metrics: Any = stored.metrics
        """All scores, as `metrics.json` holds them: `medexam.measures.Metrics` for questions with numbered options."""
        self.n = stored.metrics.n
        """Questions that are scored."""
        right = stored.metrics.right
        self.accuracy = right / self.n if right is not None and self.n else None
        """Right answers among the scored questions, 0 to 1; None if answers are more or less right."""
        self.complete = stored.complete
        """Whether every question is scored."""

    @cached_property
    def predictions(self) -> Predictions:
        """What was answered: a mapping of question keys, with `to_pandas()`; read when it is looked at first."""
        return Predictions(self.stored.folder)

    def resume(self, *, limits: Limits = NO_LIMITS, progress: bool = True) -> "Run":
        """Ask its pending questions, failed ones included, under its own spec; return the run as it is then."""
        if self.complete:
            return self
        from medexam.experiments.plan.planner import plan_resume

        return _ask(plan_resume(self.stored.folder), track=True, limits=limits, progress=progress)[0]

    def blocks(self) -> list[Block]:
        """Show the scores, with the breakdowns and details of `medexam report`."""
        from medexam.experiments.report.run_blocks import run_blocks

        return run_blocks(self.stored)

    def __repr__(self) -> str:
        accuracy = "" if self.accuracy is None else f", accuracy {100 * self.accuracy:.1f} %"
        return f"<Run {self.id}: {self.n} of {len(self.stored.record.questions)} questions scored{accuracy}>"


class Runs(Displayed, UserList[Run]):
    """Several runs. They show themselves side by side; one is found by its place, its program or its id."""

    def __init__(self, runs: Iterable[Run] = (), stop: str | None = None) -> None:
        super().__init__(runs)
        self.stop = stop
        """Why asking ended early, `interrupted` or `failures`; None if it did not."""

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Run: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    def __getitem__(self, key: SupportsIndex | str | slice) -> Run | Self:
        if not isinstance(key, str):
            return super().__getitem__(key)
        matches = [run for run in self if key in (run.program, run.id)]
        if len(matches) != 1:
            names = ", ".join(run.id for run in matches or self)
            raise KeyError(f"{key!r} names {'several runs' if matches else 'none of the runs'}: {names}")
        return matches[0]

    @property
    def complete(self) -> bool:
        """Whether every question of every run is scored."""
        return self.stop is None and all(run.complete for run in self)

    def board(self) -> "Leaderboard":
        """Rank the models over the benchmarks of these runs, as `medexam board` does."""
        from medexam.experiments.report.leaderboard import make_leaderboard

        return make_leaderboard([run.stored for run in self])

    def blocks(self) -> list[Block]:
        """Show the overview of `medexam run`."""
        from medexam.experiments.report.run_blocks import overview_blocks, pending_blocks

        runs = [run.stored for run in self]
        return [*overview_blocks(runs), *pending_blocks(runs)] if runs else ["no runs"]


RunSource = str | Path | Run
"""A run's folder, its id in the runs directory, or the run."""


def plan(
    spec: SpecSource | Sequence[SpecSource],
    *,
    program: PartSource = None,
    model: PartSource = None,
    dataset: PartSource = None,
    limit: int | None = None,
    runs_dir: str | Path | None = None,
    **overrides: Any,
) -> Plan:
    """Show what `run` would do with the same arguments: runs, questions, calls, and a prompt of each; asks nothing."""
    settings = gather(overrides, program=program, model=model, dataset=dataset, **{"dataset.limit": limit})
    return plan_spec(spec, settings, runs_dir=_runs_dir(runs_dir), only_look=True)


@reads_kept()
def run(
    spec: SpecSource | Sequence[SpecSource],
    *,
    program: PartSource = None,
    model: PartSource = None,
    dataset: PartSource = None,
    limit: int | None = None,
    runs_dir: str | Path | None = None,
    fresh: bool = False,
    repeat: int = 0,
    keep_items: bool = True,
    limits: Limits = NO_LIMITS,
    workers: int | None = None,
    ray: str | None = None,
    progress: bool = True,
    track: bool | str = True,
    **overrides: Any,
) -> Runs:
    """Run an experiment, or continue it where it stopped; what is answered already is not asked again.

    `spec` is a YAML file, the name of a shipped experiment or of a data set, a mapping, or an `ExperimentSpec`. Of
    a list of specs all are asked in one plan, and `Runs.board` ranks the models over them.
    `program`, `model` and `dataset` change those parts; a list makes a run of each. A spec replaces a part. A text such
    as `"few_shot"` keeps what else the part says and the program or model takes. A mapping changes the fields that it
    holds, or replaces a part if it names another. `overrides` set single
    keys, with two underscores for a dot: `dataset__language="es"`. `repeat` asks each run's questions that often again,
    in other orders: `compare` then knows how far answers vary by themselves. `keep_items` False leaves the
    questions out of the folders, where a licence forbids them. `limits` end the asking, such as
    `medexam.Limits(minutes=10)`. `workers` processes of this machine ask; with `ray`, such
    as `"10.0.0.1:6379"`, the machines of that Ray cluster ask, and empty starts one here. `track` is an MLflow store;
    True: the one beside the runs; False: none. An interrupt (Ctrl-C, the stop button) keeps every answer.
    Raises `MedExamError` for whatever a user can cure.
    """
    settings = gather(overrides, program=program, model=model, dataset=dataset, **{"dataset.limit": limit})
    start: dict[str, Any] = {"fresh": fresh, "repeat": repeat, "keeps_items": keep_items}
    planned = plan_spec(spec, settings, runs_dir=_runs_dir(runs_dir), **start)
    return _ask(planned, track=track, limits=limits, workers=workers, ray=ray, progress=progress)


def _ask(plan: Plan, *, track: bool | str, **settings: Any) -> Runs:
    from medexam.experiments.track import track_changes

    runs, stop, _ = carry_out(plan, track=track, **settings)
    runs = [run for run in runs if not run.folder.repeat_number]
    send_to_mlflow(track_changes, runs, track=track, runs_dir=plan.runs_dir)
    return Runs([Run(run) for run in runs], stop)


def load_run(run: RunSource, *, runs_dir: str | Path | None = None, metrics: Sequence[str] = ()) -> Run:
    """Load a stored run, by its folder or its id in the runs directory, scored anew if its data or answers changed.

    `metrics` of your own, such as `"./my_metrics.py:cites"`, score it too from now on. Raises `RunFolderError` if there
    is no such run, or several in the folder.
    """
    if isinstance(run, Run) and not metrics:
        return run
    from medexam.experiments.report.current import current_run

    folder, *others = find_runs([_run_path(run)], _runs_dir(runs_dir))
    if others:
        raise RunFolderError(f"{run} holds {1 + len(others)} runs: name one of them, or take medexam.list_runs")
    return Run(current_run(folder, print_notice, metrics))


def list_runs(runs_dir: str | Path | None = None) -> Runs:
    """List the runs in a folder, in the order in which they began.

    One that cannot be read is told on standard error and left out.
    """
    from medexam.experiments.report.current import current_run

    runs = []
    for child in runs_inside(_runs_dir(runs_dir)):
        try:
            runs.append(Run(current_run(child, print_notice)))
        except MedExamError as error:
            print_notice(f"warning: {child.name} is left out: {error}")
    return Runs(runs)


def compare(
    baseline: RunSource | Runs,
    *others: RunSource,
    reading: Reading | None = None,
    runs_dir: str | Path | None = None,
    **sections: Any,
) -> "Comparison":
    """Compare runs with the first one on the questions that all have scored; asks no model.

    With `reading`, read the replies of all runs so. `sections` are the flags of `medexam compare` that ask for more,
    those of installed packages too: `ensemble="vote"`, `equivalent_within=2.0`, `strengths=True`, `cutoff="2023-06"`.

    Raises `DatasetError` if they share no question, and `SpecError` if there is nothing to compare with, or if no
    package adds a section.
    """
    from medexam.experiments.compare.further import find_further
    from medexam.experiments.compare.runs import compare_runs, find_compared

    runs = [*(baseline if isinstance(baseline, Runs) else [baseline]), *others]
    folders = find_compared([*map(_run_path, runs)], _runs_dir(runs_dir))
    return compare_runs(tuple(folders), tuple(find_further(**sections)), reading)


def report(
    runs: RunSource | Runs,
    *others: RunSource,
    html: str | Path | None = None,
    markdown: str | Path | None = None,
    latex: str | Path | None = None,
    plots: str | Path | None = None,
    metrics: Sequence[str] = (),
    by: Sequence[str] = (),
    runs_dir: str | Path | None = None,
) -> "Report":
    """Build the report on stored runs, which shows itself; asks no model.

    `html` is a file for one page with tables, pictures and every question, `markdown` one for the report as Markdown,
    `latex` one for the tables in LaTeX. `plots` is a folder for plots (PNG), or a file that ends in .pdf, .svg or
    .png. `metrics` are those of `load_run`. `by` are columns to break scores down by, as `--by` takes them. Raises
    `SpecError` if no table holds all runs, and `RunFolderError` if a file cannot be written.
    """
    from medexam.experiments.entry.report import Report, write_files

    sources = [*(runs if isinstance(runs, Runs) else [runs]), *others]
    new_report = Report([load_run(source, runs_dir=runs_dir, metrics=metrics).stored for source in sources], by=by)
    files = {"html": html, "plots": plots, "markdown": markdown, "latex": latex}
    list(write_files(new_report, **{name: Path(path) for name, path in files.items() if path is not None}))
    return new_report


def optimize(
    spec: SpecSource,
    *,
    program: PartSource = None,
    model: PartSource = None,
    dataset: PartSource = None,
    runs_dir: str | Path | None = None,
    fresh: bool = False,
    progress: bool = True,
    track: bool | str = True,
    **overrides: Any,
) -> "Optimization":
    """Optimize a program's demonstrations and instructions, or continue an interrupted optimization.

    The arguments are those of `run`; the spec's `optimizer` part, or `optimizer__kind="bootstrap"`, says how. The best
    program lies in the `folder` of what is returned. An interrupt keeps the best program so far. Raises `MedExamError`
    for whatever a user can cure.
    """
    from medexam.experiments.optimize.optimizer import optimize as optimize_program
    from medexam.experiments.optimize.plan import plan_optimization
    from medexam.experiments.track import track_optimization

    settings = gather(overrides, program=program, model=model, dataset=dataset)
    planned = plan_optimization(load_document(spec), settings, runs_dir=_runs_dir(runs_dir), fresh=fresh)
    with Bars(disable=not progress) as bars:
        optimization = optimize_program(planned, bars)
    send_to_mlflow(track_optimization, optimization, track=track, runs_dir=optimization.folder.parent)
    return optimization


def _run_path(run: RunSource) -> Path:
    return run.folder if isinstance(run, Run) else Path(run)


def _runs_dir(runs_dir: str | Path | None) -> Path:
    return default_runs_dir() if runs_dir is None else Path(runs_dir)
