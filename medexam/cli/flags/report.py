"""The flags of `medexam report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import (
    LAYOUTS,
    BaselineOption,
    JsonOption,
    LatexOption,
    RescoreOption,
    RunsDirOption,
)
from medexam.errors import SpecError
from medexam.plugins import added_names

RunsArgument = Annotated[
    tuple[Path, ...],
    typer.Argument(
        metavar="[RUN...]",
        autocompletion=complete_run,
        help="Run folders, folders of runs, or ids in the runs directory; all runs there by default.",
    ),
]


def _check_layout(layout: str | None) -> str | None:
    """Return the layout as it was named; raises `SpecError` listing the names if no package adds it."""
    if layout is not None and layout not in added_names(LAYOUTS):
        choices = ", ".join(added_names(LAYOUTS)) or "none, for no package that adds one is installed"
        raise SpecError(f"--layout {layout}: no layout has this name; the choices are {choices}")
    return layout


@dataclass(frozen=True)
class ReportSettings:
    """Which runs are shown, how they are scored, and what is written; None or () for what is not asked for."""

    runs: RunsArgument = ()
    baseline: BaselineOption = None
    as_json: JsonOption = False
    plots: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Write plots: PNG into a folder, or FILE.pdf, .svg or .png."),
    ] = None
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown.")] = None
    latex: LatexOption = None
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every score as CSV: a row a run and group, a column a number."),
    ] = None
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one page with tables, pictures and every question (HTML)."),
    ] = None
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=_check_layout,
            help="What an installed package makes of the runs, such as a paper's tables; an unknown name lists them.",
        ),
    ] = None
    metric: Annotated[
        tuple[str, ...],
        typer.Option(
            metavar="CODE", help=("Also score by this metric: ./file.py:function or module:function; may be repeated.")
        ),
    ] = ()
    by: Annotated[
        tuple[str, ...],
        typer.Option(
            metavar="COLUMN",
            help="Break scores down by discipline, year, negation, length, numbers, picture or options; or by "
            "FILE:COLUMN, a table with a column `question`; may be repeated.",
        ),
    ] = ()
    watch: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve the page on 127.0.0.1 while questions are asked, until Ctrl-C.",
        ),
    ] = None
    runs_dir: RunsDirOption = None
    rescore: RescoreOption = False
    reread: Annotated[
        bool, typer.Option("--reread", help="Read stored replies by today's reader; nothing is asked or written.")
    ] = False
    protocol: Annotated[bool, typer.Option("--protocol", help="List all that can change each run's numbers.")] = False
