"""`medexam trend`: a score over dated runs, without asking a model."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.options import JsonOption, RunsDirOption
from medexam.cli.views.output import print_json
from medexam.cli.views.runs import print_notice, read_current

RunsArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[RUN...]", help="Run folders, folders of runs, or ids; all of the runs directory if none."),
]


def trend(
    runs: RunsArgument = None,
    measure: Annotated[
        str | None, typer.Option(help="The score, by its name in MLflow, such as exam_score; accuracy by default.")
    ] = None,
    as_json: JsonOption = False,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR|FILE", help="Write trend.png into a folder, or FILE.pdf, .svg or .pgf.")
    ] = None,
    runs_dir: RunsDirOption = None,
) -> None:
    """Show a score over dated runs, a line for each strategy, model and data set; asks no model."""
    from medexam.experiments.report.shown import print_blocks
    from medexam.experiments.report.trend import find_trend
    from medexam.experiments.store.paths import default_runs_dir, run_paths
    from medexam.experiments.store.run_folder import find_runs

    root = runs_dir or default_runs_dir()
    score_trend = find_trend(read_current(find_runs(run_paths(runs, root) if runs else [root])), measure)
    if plots is not None:
        from medexam.experiments.report.plots.pictures import render_plot, write_pictures
        from medexam.experiments.report.plots.trend import trend_plot

        for path in write_pictures([render_plot(trend_plot(score_trend))], plots, "--plots"):
            print_notice(f"wrote {path}")
    if as_json:
        print_json(score_trend.document())
    else:
        from medexam.cli.terminal import Terminal

        print_blocks(Terminal(), score_trend.blocks())
