"""Optimizations in Python: better demonstrations and instructions for a program."""

from pathlib import Path
from typing import Any

from medexam.experiments.api.settings import PartSource, gather
from medexam.experiments.entry.carry_out import send_to_mlflow
from medexam.experiments.optimize.optimization import Optimization
from medexam.experiments.optimize.optimizer import optimize as carry_out
from medexam.experiments.optimize.plan import plan_optimization
from medexam.experiments.optimize.progress import TrialProgress
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.store.run_folder import default_runs_dir
from medexam.experiments.track import track_optimization
from medexam.specs import load_document
from medexam.specs.loading import SpecSource


class Optimized(Displayed):
    """What an optimization found. It shows its trials."""

    def __init__(self, optimization: Optimization) -> None:
        self.optimization = optimization
        """Everything that its folder holds."""

    @property
    def folder(self) -> Path:
        """Where the best program lies: run it with `program__load=` this folder."""
        return self.optimization.folder.path

    @property
    def finished(self) -> bool:
        """Whether nothing is left to try, or to spend."""
        return self.optimization.finished

    def blocks(self) -> list[Block]:
        """List the trials, what they cost, and where the program lies."""
        optimization = self.optimization
        return [
            optimization.trials_table(),
            optimization.costs,
            f"Program, demonstrations and report are in {optimization.folder.path}",
        ]


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
) -> Optimized:
    """Optimize a program's demonstrations and instructions, or continue an interrupted optimization.

    The arguments are those of `run`; the spec's `optimizer` part, or `optimizer__kind="bootstrap"`, says how. An
    interrupt keeps the best program so far. Raises `MedExamError` for whatever a user can cure.
    """
    settings = gather(overrides, program=program, model=model, dataset=dataset)
    planned = plan_optimization(
        load_document(spec), settings, runs_dir=Path(runs_dir or default_runs_dir()), fresh=fresh, only_look=False
    )
    with TrialProgress(disable=not progress) as observer:
        optimization = carry_out(planned, observer)
    send_to_mlflow(track_optimization, optimization, track=track, runs_dir=optimization.folder.path.parent)
    return Optimized(optimization)
