"""`medexam optimize`: better demonstrations and instructions for a program, chosen on exams that are not tested."""

import sys
from typing import Annotated

import typer

from medexam.cli.options import (
    INCOMPLETE,
    RUNS,
    SPEC_HELP,
    JsonOption,
    OverridesOption,
    RunsDirOption,
    TrackingOption,
)
from medexam.cli.output import print_document, print_json, send_to_mlflow
from medexam.errors import SpecError
from medexam.text import print_notice


def optimize(
    spec: Annotated[str, typer.Argument(help=SPEC_HELP, metavar="SPEC", show_default=False)],
    overrides: OverridesOption = None,
    runs_dir: RunsDirOption = RUNS,
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
    from medexam.experiments.entry.progress import Bars
    from medexam.experiments.optimize.optimization import RECORD
    from medexam.experiments.optimize.optimizer import optimize as carry_out
    from medexam.experiments.optimize.plan import plan_optimization
    from medexam.experiments.report.shown import Terminal, print_blocks
    from medexam.experiments.track import track_optimization

    planned = plan_optimization(document, changes, runs_dir=runs_dir, fresh=fresh, only_look=plan)
    if plan:
        begun, cell = planned.optimization, planned.optimization.cell
        counts = {name: getattr(begun, name) for name in ("train", "dropped", "validation", "tested", "candidates")}
        parts = {"optimizer": begun.optimizer.model_dump(mode="json"), "program": cell.program.label}
        parts |= {"id": begun.work.name, "folder": str(begun.work.path.resolve()), "model": cell.model.label}
        print_document({**parts, **counts, **planned.calls}, as_json=as_json)
        return
    with Bars() as progress:
        optimization = carry_out(planned, progress)
    folder = optimization.folder
    optimizers = (planned.optimization.optimizer, optimization.optimizer)
    if optimization.ending == "complete" and len({(o.max_calls, o.max_tokens) for o in optimizers}) > 1:
        print_notice(
            f"{folder.name} is complete: all {optimization.candidates} programs that it asks for were tried, so "
            "another budget changes nothing; other optimizer.candidates, kind or seed make another one"
        )
    if as_json:
        best = optimization.best.number if optimization.best else None
        print_json({**optimization.work.read_json(RECORD), "folder": str(folder.resolve()), "best": best})
    else:
        print_blocks(Terminal(), optimization.blocks())
    send_to_mlflow(track_optimization, optimization, tracking_uri=tracking_uri, runs_dir=folder.parent)
    if optimization.ending != "complete":
        larger = " under a larger budget (--set optimizer.max_calls or max_tokens)"
        condition = larger if optimization.ending == "budget" else ""
        print_notice(f"{optimization.ending}: {optimization.why}; the same command continues{condition}")
    if optimization.best is not None and optimization.best.number > 0:
        sys.stderr.write(
            f"Run the optimized program on the tested questions: {sys.argv[0]} run {spec} --set "
            f"program.load={folder}\nand the program as written, to compare both: {sys.argv[0]} run {spec}\n"
        )
    if not optimization.finished:
        raise typer.Exit(INCOMPLETE)
