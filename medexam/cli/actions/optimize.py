"""What `medexam optimize` does with a spec that is read: plan, carry out, show and send to MLflow."""

import sys
from collections.abc import Mapping
from typing import Any

import typer

from medexam.cli.flags.optimize import OptimizeSettings
from medexam.cli.options import INCOMPLETE
from medexam.cli.views.optimize import (
    optimization_document,
    optimization_plan_document,
    print_optimization,
    print_optimization_plan,
)
from medexam.cli.views.output import print_json, send_to_mlflow
from medexam.cli.views.runs import print_notice
from medexam.experiments.optimize.optimization import Optimization, OptimizationEnding
from medexam.experiments.optimize.optimizer import optimize as carry_out
from medexam.experiments.optimize.optimizer import why_nothing_more
from medexam.experiments.optimize.plan import plan_optimization
from medexam.experiments.optimize.progress import TrialProgress
from medexam.experiments.optimize.tracking import track_optimization
from medexam.experiments.store.paths import default_runs_dir


def optimize_program(
    settings: OptimizeSettings,
    spec: str,
    document: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Optimize a program's demonstrations and instructions, or continue an interrupted optimization."""
    runs_dir = settings.runs_dir or default_runs_dir()
    planned = plan_optimization(document, overrides, runs_dir=runs_dir, fresh=settings.fresh, only_look=settings.plan)
    if settings.plan:
        print_json(optimization_plan_document(planned)) if as_json else print_optimization_plan(planned)
        return
    with TrialProgress() as progress:
        optimization = carry_out(planned, progress)
    if reason := why_nothing_more(planned, optimization):
        print_notice(f"{optimization.folder.name} is complete: {reason}")
    if as_json:
        print_json(optimization_document(optimization))
    else:
        print_optimization(optimization)
    send_to_mlflow(
        track_optimization, optimization, tracking_uri=settings.tracking_uri, runs_dir=optimization.folder.path.parent
    )
    _say_next(optimization, spec)
    if not optimization.finished:
        raise typer.Exit(INCOMPLETE)


def _say_next(optimization: Optimization, spec: str) -> None:
    folder = optimization.folder.path
    if optimization.ending is not OptimizationEnding.COMPLETE:
        larger = " under a larger budget (--set optimizer.max_calls, max_tokens or max_minutes)"
        condition = larger if optimization.ending is OptimizationEnding.BUDGET else ""
        print_notice(f"{optimization.ending}: {optimization.why}; the same command continues{condition}")
    if optimization.best is not None and optimization.best.number > 0:
        sys.stderr.write(
            f"Run the optimized program on the tested questions: {sys.argv[0]} run {spec} --set "
            f"program.load={folder}\nand the program as written, to compare both: {sys.argv[0]} run {spec}\n"
        )
