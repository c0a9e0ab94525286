"""Runs in Python: plan them, carry them out, read them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict

from medexam.datasets.kept import reads_kept
from medexam.errors import MedExamError, RunFolderError
from medexam.experiments.api.asking import ask, write_notice
from medexam.experiments.api.results import Run, RunPlan, Runs
from medexam.experiments.api.settings import PartSource, gather
from medexam.experiments.entry.carry_out import Carriers, plan_lines, plan_specs
from medexam.experiments.report.current import current_run, rescored
from medexam.experiments.run.spending import NO_LIMITS, Limits
from medexam.experiments.store.paths import default_runs_dir, run_paths
from medexam.experiments.store.run_folder import find_runs, runs_inside
from medexam.specs.loading import SpecSource


class RayCluster(TypedDict, total=False):
    """Which Ray cluster asks; empty starts one on this machine."""

    address: str
    """The cluster's head, `HOST:PORT`."""
    number: int
    """How many shards; one on each machine by default."""


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
) -> RunPlan:
    """Show what `run` would do with the same arguments: runs, questions, calls, and a prompt of each; asks nothing."""
    settings = gather(overrides, program=program, model=model, dataset=dataset)
    return RunPlan(plan_specs(spec, settings, limit, runs_dir=_path(runs_dir), only_look=True))


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
    accept_model_change: bool = False,
    accept_refusals: bool = False,
    keep_items: bool = True,
    limits: Limits = NO_LIMITS,
    workers: int | Literal["auto"] | RayCluster = 1,
    progress: bool = True,
    track: bool | str = True,
    **overrides: Any,
) -> Runs:
    """Run an experiment, or continue it where it stopped; what is answered already is not asked again.

    `spec` is a YAML file, the name of a shipped experiment or of a data set, a mapping, or an `ExperimentSpec`. It may
    be a suite too, or a list of specs: all are asked in one plan, and `Runs.board` ranks the models over them.
    `program`, `model` and `dataset` replace those parts: a spec, or a text such as `"few_shot"`; a list makes a run of
    each. A mapping changes the fields that it holds, or replaces a part if it names another. `overrides` set single
    keys, with two underscores for a dot: `dataset__language="es"`. `repeat` asks each run's questions that often again,
    in other orders: `compare` then knows how far answers vary by themselves. `accept_refusals` counts questions as
    unanswered that a server refused in three runs in a row. `keep_items` False leaves the questions out of the folders,
    where a licence forbids them. `limits` end the asking, such as
    `medexam.Limits(minutes=10)`. `workers` processes of this machine ask, `"auto"` is as many as help; `{"address":
    "10.0.0.1:6379"}` has the machines of that Ray cluster ask. `track` is an MLflow store; True: the one beside the
    runs; False: none. An interrupt (Ctrl-C, the stop button) keeps every answer.
    Raises `MedExamError` for whatever a user can cure.
    """
    settings = gather(overrides, program=program, model=model, dataset=dataset)
    planned = plan_specs(spec, settings, limit, runs_dir=_path(runs_dir), fresh=fresh, repeat=repeat)
    for line in plan_lines(planned):
        write_notice(line)
    if isinstance(workers, Mapping):
        carriers = Carriers("ray", workers.get("address"), workers.get("number"), limits)
    else:
        carriers = Carriers(workers=workers, limits=limits)
    planned = replace(planned, accept_model_change=accept_model_change, accept_refusals=accept_refusals)
    planned = replace(planned, keeps_items=keep_items)
    runs, stop = ask(planned, carriers, progress=progress, track=track)
    return Runs(list(map(Run, runs)), stop)


def load_run(run: RunSource, *, runs_dir: str | Path | None = None, metrics: Sequence[str] = ()) -> Run:
    """Load a stored run, by its folder or its id in the runs directory, scored anew if its data or answers changed.

    `metrics` of your own, such as `"./my_metrics.py:cites"`, score it too from now on. Raises `RunFolderError` if there
    is no such run, or several in the folder.
    """
    path = run_folder(run, where_runs_lie(runs_dir))
    folder, *others = find_runs([path])
    if others:
        raise RunFolderError(f"{path} holds {1 + len(others)} runs: name one of them, or take medexam.list_runs")
    if isinstance(run, Run) and not metrics:
        return run
    return Run(rescored(folder, metrics, write_notice) if metrics else current_run(folder, write_notice))


def list_runs(runs_dir: str | Path | None = None) -> Runs:
    """List the runs in a folder, experiments in the order in which they began, each in the order of its spec.

    One that cannot be read is told on standard error and left out.
    """
    folder = where_runs_lie(runs_dir)
    runs = []
    for child in runs_inside(folder):
        try:
            runs.append(Run(current_run(child, write_notice)))
        except MedExamError as error:
            write_notice(f"warning: {child.name} is left out: {error}")
    return Runs(runs)


def run_folder(run: RunSource, runs_dir: Path) -> Path:
    """Return where a run lies."""
    return run.folder if isinstance(run, Run) else run_paths([Path(run)], runs_dir)[0]


def where_runs_lie(runs_dir: str | Path | None) -> Path:
    """Return the runs directory; None: the usual one."""
    return _path(runs_dir) or default_runs_dir()


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
