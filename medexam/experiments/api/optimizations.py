"""Optimizations in Python: better demonstrations and instructions for a program."""

from pathlib import Path
from typing import Any

from medexam.experiments.api.settings import PartSource, gather
from medexam.experiments.entry.carry_out import send_to_mlflow
from medexam.experiments.entry.progress import Bars
from medexam.experiments.optimize.optimization import Optimization
from medexam.experiments.optimize.optimizer import optimize as carry_out
from medexam.experiments.optimize.plan import plan_optimization
from medexam.experiments.store.run_folder import default_runs_dir
from medexam.experiments.track import track_optimization
from medexam.specs import load_document
from medexam.specs.loading import SpecSource


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
) -> Optimization:
    """Optimize a program's demonstrations and instructions, or continue an interrupted optimization.

    The arguments are those of `run`; the spec's `optimizer` part, or `optimizer__kind="bootstrap"`, says how. The best
    program lies in the `folder` of what is returned. An interrupt keeps the best program so far. Raises `MedExamError`
    for whatever a user can cure.
    """
    settings = gather(overrides, program=program, model=model, dataset=dataset)
    planned = plan_optimization(
        load_document(spec), settings, runs_dir=Path(runs_dir or default_runs_dir()), fresh=fresh
    )
    with Bars(disable=not progress) as bars:
        optimization = carry_out(planned, bars)
    send_to_mlflow(track_optimization, optimization, track=track, runs_dir=optimization.folder.parent)
    return optimization
