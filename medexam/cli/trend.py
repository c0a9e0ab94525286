"""`medexam trend`: a score over dated runs, without asking a model."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.options import JsonOption, RunsDirOption

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
    from medexam.cli.actions.trend import show_trend

    show_trend(runs, measure, plots, runs_dir, as_json=as_json)
