"""`medexam report`: tables and plots from stored runs, scored anew without asking a model."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import BaselineOption, JsonOption, LatexOption, RunsDirOption, TrustOption
from medexam.cli.views.output import check_endings, print_json, write_file
from medexam.cli.views.runs import read_current
from medexam.errors import SpecError
from medexam.plugins import load_part

RunsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        autocompletion=complete_run,
        help="Run folders, folders of runs, or ids in the runs directory.",
    ),
]

LAYOUTS = "medexam.layouts"


def _check_layout(layout: str | None) -> str | None:
    """Return the layout as it was named; raises `SpecError` if no paper has this name."""
    if layout is not None:
        load_part("check", LAYOUTS)(layout)
    return layout


def report(
    runs: RunsArgument,
    baseline: BaselineOption = None,
    as_json: JsonOption = False,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Write plots: PNG into a folder, or FILE.pdf, .svg, .pgf or .png."),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown.")] = None,
    latex: LatexOption = None,
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
    from medexam.experiments.entry.report import Report
    from medexam.experiments.report.shown import print_blocks
    from medexam.experiments.report.tables import check_shown
    from medexam.experiments.store.paths import default_runs_dir, run_paths
    from medexam.experiments.store.run_folder import find_runs

    if layout is not None and html is not None:
        raise SpecError("--html writes our own tables, and --layout prints a paper's: give one of them at a time")
    check_endings({"--markdown": markdown, "--latex": latex, "--html": html})
    paths = runs if baseline is None else [baseline, *runs]
    stored_runs = read_current(find_runs(run_paths(paths, runs_dir or default_runs_dir())), metric or [])
    check_shown(stored_runs, layout, plots=plots is not None)
    new_report = Report(stored_runs, parse_weights(weight or []), protocol=protocol)
    if html is not None:
        sys.stderr.write(f"{new_report.write_page(html)}\n")
    if plots is not None:
        sys.stderr.writelines(f"{line}\n" for line in new_report.write_plots(plots))
    if layout is not None:
        load_part("print", LAYOUTS)(stored_runs, layout, markdown, latex, as_json=as_json)
        return
    if markdown is not None:
        write_file(new_report.markdown(), markdown)
    if latex is not None:
        write_file(new_report.latex(), latex, "--latex")
    if as_json:
        print_json(new_report.document())
    else:
        from medexam.cli.terminal import Terminal

        print_blocks(Terminal(), new_report.blocks())


def parse_weights(pairs: list[str]) -> dict[str, float]:
    """Parse `GROUP=WEIGHT` pairs; raises `SpecError` for what is none."""
    weights = {}
    for pair in pairs:
        group, _, weight = pair.partition("=")
        if group in weights:
            raise SpecError(f"--weight gives {group} twice: give each group one weight")
        try:
            weights[group] = float(weight)
        except ValueError:
            raise SpecError(f"--weight {pair}: give GROUP=WEIGHT, such as short=2") from None
    return weights
