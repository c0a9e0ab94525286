"""`medexam optimize`: better demonstrations and instructions for a program, chosen on exams that are not tested."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.cli.options import INCOMPLETE, JsonOption, RunsDirOption, TrackingOption, check_resumed, settings_as_flags
from medexam.cli.run import OptionalSpec, OverridesOption
from medexam.cli.views.output import print_json, send_to_mlflow
from medexam.cli.views.runs import print_notice
from medexam.errors import SpecError
from medexam.experiments.store.paths import default_runs_dir
from medexam.settings import Setting

if TYPE_CHECKING:
    from medexam.experiments.optimize.optimization import Optimization
    from medexam.experiments.optimize.plan import OptimizationPlan


@dataclass(frozen=True)
class OptimizeSettings:
    """What is optimized, beside the spec, and where it lies."""

    overrides: OverridesOption = ()
    runs_dir: RunsDirOption = None
    plan: Annotated[bool, Setting("Say what would be tried and what it may cost, and stop.")] = False
    resume: Annotated[
        str | None,
        Setting("Instead of a SPEC: go on with this one; --set may raise its budget.", metavar="FOLDER"),
    ] = None
    fresh: Annotated[bool, Setting("Start another one beside that which exists.")] = False
    tracking_uri: TrackingOption = None


@settings_as_flags
def optimize(settings: OptimizeSettings, spec: OptionalSpec = None, as_json: JsonOption = False) -> None:
    """Optimize a program's demonstrations and instructions, or continue where that stopped."""
    if settings.plan and settings.tracking_uri is not None:
        raise SpecError("--plan sends nothing to MLflow: leave out --tracking-uri, or --plan")
    if settings.resume is not None and (spec is not None or settings.fresh):
        raise SpecError("--resume FOLDER goes on with that optimization: leave out SPEC and --fresh")
    optimization = None
    if settings.resume is not None:
        check_resumed(settings.resume, settings.runs_dir)
        if not settings.overrides and not settings.plan:
            optimization = _complete(settings.resume, settings.runs_dir)
    if optimization is None:
        planned = _plan(spec, settings)
        if settings.plan:
            from medexam.cli.views.optimize import optimization_plan_document, print_optimization_plan

            print_json(optimization_plan_document(planned)) if as_json else print_optimization_plan(planned)
            return
        optimization = _carry_out(planned)
    from medexam.cli.views.optimize import optimization_document, print_optimization
    from medexam.experiments.optimize.tracking import track_optimization

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


def _complete(resume: str, runs_dir: Path | None) -> "Optimization | None":
    """Find the optimization to go on with, where it is complete: it is shown without its models and data."""
    from medexam.experiments.optimize.folder import find_optimization
    from medexam.experiments.optimize.optimization import OptimizationEnding, load_optimization

    optimization = load_optimization(find_optimization(resume, runs_dir or default_runs_dir()))
    return optimization if optimization.ending is OptimizationEnding.COMPLETE else None


def _plan(spec: str | None, settings: OptimizeSettings) -> "OptimizationPlan":
    from medexam.specs import load_document, parse_overrides

    overrides = parse_overrides(settings.overrides)
    if settings.resume is None and spec is None:
        raise SpecError("nothing to optimize: give a SPEC, or an optimization to go on with by --resume FOLDER")
    document = load_document(spec) if spec is not None else {}
    from medexam.experiments.optimize.folder import find_optimization
    from medexam.experiments.optimize.plan import plan_optimization, plan_resumed

    runs_dir = settings.runs_dir or default_runs_dir()
    if settings.resume is not None:
        return plan_resumed(find_optimization(settings.resume, runs_dir), overrides)
    return plan_optimization(document, overrides, runs_dir=runs_dir, fresh=settings.fresh, only_look=settings.plan)


def _carry_out(planned: "OptimizationPlan") -> "Optimization":
    from medexam.cli.views.optimize import TrialProgress
    from medexam.experiments.optimize.optimizer import optimize as carry_out
    from medexam.experiments.optimize.optimizer import why_nothing_more

    with TrialProgress() as progress:
        optimization = carry_out(planned, progress)
    if reason := why_nothing_more(planned, optimization):
        print_notice(f"{optimization.folder.name} is complete: {reason}")
    return optimization


def _say_next(optimization: "Optimization", spec: str | None) -> None:
    from medexam.experiments.optimize.optimization import OptimizationEnding

    folder = optimization.folder.path
    if optimization.ending is not OptimizationEnding.COMPLETE:
        larger = " under a larger budget (--set optimizer.max_calls, max_tokens or max_minutes)"
        condition = larger if optimization.ending is OptimizationEnding.BUDGET else ""
        print_notice(
            f"{optimization.ending}: {optimization.why}; medexam optimize --resume {folder} continues{condition}"
        )
    if optimization.best is not None and optimization.best.number > 0:
        spec_name = spec or "SPEC"
        sys.stderr.write(
            f"Ask the tested questions with it: {sys.argv[0]} run {spec_name} --set program.load={folder}\n"
            f"and as written, to compare both: {sys.argv[0]} run {spec_name}\n"
        )
