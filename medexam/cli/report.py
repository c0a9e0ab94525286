"""`medexam report`: tables and plots from stored runs, scored anew without asking a model."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import BaselineOption, JsonOption, RunsDirOption, TrustOption
from medexam.cli.views.output import print_json, write_file
from medexam.cli.views.paper_layout import check_layout, print_layout
from medexam.cli.views.runs import read_current
from medexam.errors import SpecError

RunsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[RUN...]",
        autocompletion=complete_run,
        help="Run folders, folders of runs, or ids in the runs directory; all runs there by default.",
    ),
]


def report(
    runs: RunsArgument = None,
    baseline: BaselineOption = None,
    as_json: JsonOption = False,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Write plots (PNG) into this folder.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one page with tables, pictures and every question (HTML)."),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=check_layout,
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
    root = runs_dir or default_runs_dir()
    named = [*([] if baseline is None else [baseline]), *(runs or [])]
    paths = [*run_paths(named, root), *([] if runs else [root])]
    stored_runs = read_current(find_runs(paths), metric or [])
    check_shown(stored_runs, layout, plots=plots is not None)
    new_report = Report(stored_runs, parse_weights(weight or []), protocol=protocol)
    if html is not None:
        sys.stderr.write(f"{new_report.write_page(html)}\n")
    if plots is not None:
        sys.stderr.writelines(f"{line}\n" for line in new_report.write_plots(plots))
    if layout is not None:
        print_layout(stored_runs, layout, markdown, as_json=as_json)
        return
    if markdown is not None:
        write_file(new_report.markdown(), markdown)
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
