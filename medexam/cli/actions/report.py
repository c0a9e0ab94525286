"""What `medexam report` does: score stored runs anew, and show or write their tables and plots."""

import sys
from dataclasses import dataclass
from pathlib import Path

from medexam.cli.options import LAYOUTS
from medexam.cli.terminal import Terminal
from medexam.cli.views.output import print_json, write_bibtex, write_file
from medexam.cli.views.runs import read_current
from medexam.errors import SpecError
from medexam.experiments.entry.report import Report
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.report.tables import check_shown
from medexam.experiments.store.paths import default_runs_dir, run_paths
from medexam.experiments.store.run_folder import find_runs
from medexam.plugins import load_part


@dataclass(frozen=True)
class ReportFiles:
    """What a report is written to; None for what is not."""

    plots: Path | None
    markdown: Path | None
    latex: Path | None
    html: Path | None
    bibtex: Path | None


def report_runs(
    runs: list[Path] | None,
    baseline: Path | None,
    files: ReportFiles,
    layout: str | None,
    metric: list[str] | None,
    runs_dir: Path | None,
    weight: list[str] | None,
    by: list[str],
    *,
    as_json: bool,
    protocol: bool,
) -> None:
    """Show stored runs as tables and plots; scores them again, asks no model."""
    if layout is not None and files.html is not None:
        raise SpecError("--html writes our own tables, and --layout prints a paper's: give one of them at a time")
    if layout is not None and by:
        raise SpecError("--by breaks our own tables down, and --layout prints a paper's: give one of them at a time")
    root = runs_dir or default_runs_dir()
    named = [*([] if baseline is None else [baseline]), *(runs or [])]
    paths = [*run_paths(named, root), *([] if runs else [root])]
    stored_runs = read_current(find_runs(paths), metric or [])
    check_shown(stored_runs, layout, plots=files.plots is not None)
    new_report = Report(stored_runs, parse_weights(weight or []), protocol=protocol, by=by)
    if files.html is not None:
        sys.stderr.write(f"{new_report.write_page(files.html)}\n")
    if files.plots is not None:
        sys.stderr.writelines(f"{line}\n" for line in new_report.write_plots(files.plots))
    write_bibtex([run.folder for run in stored_runs], files.bibtex)
    if layout is not None:
        load_part("print", LAYOUTS)(stored_runs, layout, files.markdown, files.latex, as_json=as_json)
        return
    if files.markdown is not None:
        write_file(new_report.markdown(), files.markdown)
    if files.latex is not None:
        write_file(new_report.latex(), files.latex, "--latex")
    if as_json:
        print_json(new_report.document())
    else:
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
