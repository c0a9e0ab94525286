"""`medexam report`: tables and plots from stored runs, scored anew without asking a model."""

import time
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.options import (
    RUNS,
    BaselineOption,
    JsonOption,
    LatexOption,
    MarkdownOption,
    RescoreOption,
    RunsArgument,
    RunsDirOption,
    check_ending,
)
from medexam.cli.output import print_result, read_current
from medexam.errors import SpecError
from medexam.kept import reads_kept
from medexam.plugins import added_names, load_object

_EVERY_S = 5.0
"""Seconds after which a watched page is written again."""
LAYOUTS = "medexam.layouts"
"""The group in which packages add layouts: they take runs and have `blocks`, `markdown`, `latex` and `document`."""


def report(
    runs: RunsArgument = None,
    baseline: BaselineOption = None,
    as_json: JsonOption = False,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Write plots: PNG into a folder, or FILE.pdf, .svg or .png."),
    ] = None,
    markdown: MarkdownOption = None,
    latex: LatexOption = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=check_ending,
            help="Write every score as CSV: a row a run and group, a column a number.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=check_ending,
            help="Write one page with tables, pictures and every question (HTML).",
        ),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What an installed package makes of the runs, such as a paper's tables; an unknown name lists them.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE", help="Also score by this metric: ./file.py:function or module:function; may be repeated."
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Break scores down by discipline, year, negation, length, numbers, picture or options; or by "
            "FILE:COLUMN, a table with a column `question`; may be repeated.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Write the page of --html again while questions are asked, until Ctrl-C.")
    ] = False,
    runs_dir: RunsDirOption = RUNS,
    rescore: RescoreOption = False,
    reread: Annotated[
        bool, typer.Option("--reread", help="Read stored replies by today's reader; nothing is asked or written.")
    ] = False,
    protocol: Annotated[bool, typer.Option("--protocol", help="List all that can change each run's numbers.")] = False,
) -> None:
    """Show stored runs as tables and plots, scored again without a model.

    For example:
        medexam report runs --html report.html
        medexam report --watch --html live.html
        medexam report 3c2aae ff221f
    """
    from medexam.experiments.entry.report import Report
    from medexam.experiments.store.run_folder import find_runs

    if watch:
        _write_again(runs or [runs_dir], runs_dir, html)
    if layout is not None and layout not in added_names(LAYOUTS):
        choices = ", ".join(added_names(LAYOUTS)) or "none, for no package that adds one is installed"
        raise SpecError(f"--layout {layout}: no layout has this name; the choices are {choices}")
    own = {"html": html, "csv": csv, "plots": plots, "by": by, "protocol": protocol}
    if layout and (names := [name for name, value in own.items() if value]):
        raise SpecError(f"--{names[0]} belongs to our own report, and --layout to another: give one of them at a time")
    folders = find_runs([*filter(None, [baseline]), *(runs or [runs_dir])], runs_dir)
    with reads_kept():
        stored_runs = read_current(folders, metric or (), rescore=rescore)
        if reread:
            # Imported here: it loads all that asks models.
            from medexam.experiments.entry.rereading import read_today

            stored_runs = [read_today(run) for run in stored_runs]
        if layout is None:
            new_report = Report(stored_runs, protocol=protocol, by=by or ())
        else:
            new_report = load_object(layout, LAYOUTS)(stored_runs)
        print_result(new_report, as_json=as_json, html=html, plots=plots, markdown=markdown, latex=latex, csv=csv)


def _write_again(runs: list[Path], runs_dir: Path, html: Path | None) -> None:
    """Write the page of these runs again and again; a browser that shows it loads it anew."""
    from medexam.experiments.report.current import current_run
    from medexam.experiments.report.page.document import render_page
    from medexam.experiments.report.run_tables import split_families
    from medexam.experiments.report.shown import write_report
    from medexam.experiments.store.run_folder import find_runs

    if html is None:
        raise SpecError("--watch writes the page of --html again: name its file with --html FILE")
    while True:
        start = time.monotonic()
        stored = [current_run(folder, lambda _: None) for folder in find_runs(runs, runs_dir)]
        # A page shows the runs of one benchmark: those that began last.
        page_runs = next(family for family in split_families(stored) if stored[-1] in family)
        page = "".join(render_page(page_runs))
        write_report(page.replace("<head>", '<head><meta http-equiv="refresh" content="5">', 1), html, "--html")
        # It takes a sixth of the time at most.
        time.sleep(max(_EVERY_S, 5 * (time.monotonic() - start)))
