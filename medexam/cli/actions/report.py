"""What `medexam report` does: score stored runs anew, and show or write their tables and plots."""

import sys
from collections.abc import Sequence
from pathlib import Path

from medexam.cli.flags.report import ReportSettings
from medexam.cli.options import LAYOUTS
from medexam.cli.views.listening import check_port
from medexam.cli.views.output import print_json, write_file
from medexam.cli.views.runs import print_notice, read_current
from medexam.errors import SpecError
from medexam.experiments.entry.report import Report
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.store.paths import default_runs_dir, run_paths
from medexam.experiments.store.run_folder import find_runs
from medexam.plugins import load_object


def report_runs(settings: ReportSettings) -> None:
    """Show stored runs as tables and plots; scores them again, asks no model."""
    if settings.watch is not None:
        _serve_runs(settings.runs, settings.runs_dir or default_runs_dir(), settings.watch)
        return
    layout, html = settings.layout, settings.html
    for name in ("html", "csv", "plots", "by", "protocol"):
        if layout is not None and getattr(settings, name):
            raise SpecError(f"--{name} belongs to our own report, and --layout to another: give one of them at a time")
    root = settings.runs_dir or default_runs_dir()
    places = [*([] if settings.baseline is None else [settings.baseline]), *settings.runs]
    paths = [*run_paths(places, root), *([] if settings.runs else [root])]
    stored_runs = read_current(find_runs(paths), settings.metric, rescore=settings.rescore)
    if settings.reread:
        # Imported here: it loads all that asks models.
        from medexam.experiments.entry.rereading import read_today

        stored_runs = [read_today(run, print_notice) for run in stored_runs]
    if layout is None:
        new_report = Report(stored_runs, protocol=settings.protocol, by=settings.by)
    else:
        new_report = load_object(layout, LAYOUTS)(stored_runs)
    if html is not None:
        sys.stderr.write(f"{new_report.write_page(html)}\n")
    if settings.plots is not None:
        sys.stderr.writelines(f"{line}\n" for line in new_report.write_plots(settings.plots))
    if settings.markdown is not None:
        write_file(new_report.markdown(), settings.markdown)
    if settings.latex is not None:
        write_file(new_report.latex(), settings.latex, "--latex")
    if settings.csv is not None:
        write_file(new_report.csv(), settings.csv, "--csv")
    if settings.as_json:
        print_json(new_report.document())
    else:
        print_blocks(Terminal(), new_report.blocks())


def _serve_runs(runs: Sequence[Path], root: Path, port: int) -> None:
    """Serve the page of runs on 127.0.0.1 while they are asked, until Ctrl-C."""
    from medexam.experiments.entry.live_page import HOST, LivePage, serve_page

    check_port(HOST, port)
    if runs:
        find_runs(run_paths(runs, root))
    page = LivePage(tuple(runs or [root]), root)
    sys.stderr.write(f"The page is at http://{HOST}:{port}; Ctrl-C ends it\n")
    serve_page(page, port)
