"""`medexam report`: tables and plots from stored runs, scored anew without asking a model."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import (
    LAYOUTS,
    BaselineOption,
    BibtexOption,
    JsonOption,
    LatexOption,
    RunsDirOption,
    TrustOption,
)
from medexam.cli.views.output import check_endings
from medexam.plugins import load_part

RunsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[RUN...]",
        autocompletion=complete_run,
        help="Run folders, folders of runs, or ids in the runs directory; all runs there by default.",
    ),
]


def _check_layout(layout: str | None) -> str | None:
    """Return the layout as it was named; raises `SpecError` if no paper has this name."""
    if layout is not None:
        load_part("check", LAYOUTS)(layout)
    return layout


def report(
    runs: RunsArgument = None,
    baseline: BaselineOption = None,
    as_json: JsonOption = False,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Write plots: PNG into a folder, or FILE.pdf, .svg, .pgf or .png."),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown.")] = None,
    latex: LatexOption = None,
    bibtex: BibtexOption = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one page with tables, pictures and every question (HTML)."),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=_check_layout,
            help="The tables of a paper instead of our own; a name that is unknown lists the papers.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Score by ./file.py:function or module:function too; may be repeated."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Break scores down by discipline, year, negation, length, numbers, picture or options; or by "
            "FILE:COLUMN, a table with a column `question`; may be repeated.",
        ),
    ] = None,
    runs_dir: RunsDirOption = None,
    trust: TrustOption = False,  # noqa: ARG001 - its callback has done it
    protocol: Annotated[
        bool, typer.Option("--protocol", help="Say how each run's numbers came about, line by line.")
    ] = False,
    weight: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP=W", help="Rank runs that answer in words by a mean over groups; may be repeated."),
    ] = None,
) -> None:
    """Show stored runs as tables and plots; scores them again, asks no model."""
    from medexam.cli.actions.report import ReportFiles, report_runs

    check_endings({"--markdown": markdown, "--latex": latex, "--html": html, "--bibtex": bibtex})
    files = ReportFiles(plots, markdown, latex, html, bibtex)
    report_runs(runs, baseline, files, layout, metric, runs_dir, weight, by or [], as_json=as_json, protocol=protocol)
