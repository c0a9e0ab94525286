"""`medexam optimize`: better demonstrations and instructions for a program, chosen on exams that are not tested."""

import sys
from typing import Annotated

import typer

from medexam.cli.options import (
    INCOMPLETE,
    SPEC_HELP,
    JsonOption,
    OverridesOption,
    RunsDirOption,
    TrackingOption,
    complete_spec,
)
from medexam.cli.views.output import print_json, send_to_mlflow
from medexam.cli.views.runs import print_notice
from medexam.errors import SpecError


def optimize(
    spec: Annotated[
        str, typer.Argument(help=SPEC_HELP, metavar="SPEC", show_default=False, autocompletion=complete_spec)
    ],
    overrides: OverridesOption = None,
    runs_dir: RunsDirOption = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be tried and what it may cost, and stop.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start another optimization beside the existing one.")] = False,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Optimize a program's demonstrations and instructions, or continue an interrupted optimization.

    For example:
        medexam optimize headqa_optimize --plan
    """
    if plan and tracking_uri is not None:
        raise SpecError("--plan sends nothing to MLflow: leave out --tracking-uri, or --plan")
    from medexam.specs import load_document, parse_overrides

    changes, document = parse_overrides(overrides or ()), load_document(spec)
    from medexam.cli.views.optimize import (
        optimization_document,
        optimization_plan_document,
        print_optimization,
        print_optimization_plan,
    )
    from medexam.experiments.optimize.optimizer import optimize as carry_out
    from medexam.experiments.optimize.plan import plan_optimization
    from medexam.experiments.optimize.progress import TrialProgress
    from medexam.experiments.store.paths import default_runs_dir
    from medexam.experiments.track import track_optimization

    root = runs_dir or default_runs_dir()
    planned = plan_optimization(document, changes, runs_dir=root, fresh=fresh, only_look=plan)
    if plan:
        print_json(optimization_plan_document(planned)) if as_json else print_optimization_plan(planned)
        return
    with TrialProgress() as progress:
        optimization = carry_out(planned, progress)
    folder = optimization.folder.path
    if optimization.ending == "complete" and planned.optimization.optimizer.budget != optimization.optimizer.budget:
        print_notice(
            f"{folder.name} is complete: all {optimization.candidates} programs that it asks for were tried, so "
            "another budget changes nothing; other optimizer.candidates, kind or seed make another one"
        )
    print_json(optimization_document(optimization)) if as_json else print_optimization(optimization)
    send_to_mlflow(track_optimization, optimization, tracking_uri=tracking_uri, runs_dir=folder.parent)
    if optimization.ending != "complete":
        larger = " under a larger budget (--set optimizer.max_calls, max_tokens or max_minutes)"
        condition = larger if optimization.ending == "budget" else ""
        print_notice(f"{optimization.ending}: {optimization.why}; the same command continues{condition}")
    if optimization.best is not None and optimization.best.number > 0:
        sys.stderr.write(
            f"Run the optimized program on the tested questions: {sys.argv[0]} run {spec} --set "
            f"program.load={folder}\nand the program as written, to compare both: {sys.argv[0]} run {spec}\n"
        )
    if not optimization.finished:
        raise typer.Exit(INCOMPLETE)
