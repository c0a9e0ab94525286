"""What `medexam report` does: score stored runs anew, and show or write their tables and plots."""

import sys
from pathlib import Path

from medexam.cli.terminal import Terminal
from medexam.cli.views.output import print_json, write_file
from medexam.cli.views.paper_layout import print_layout
from medexam.cli.views.runs import read_current
from medexam.errors import SpecError
from medexam.experiments.entry.report import Report
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.report.tables import check_shown
from medexam.experiments.store.paths import default_runs_dir, run_paths
from medexam.experiments.store.run_folder import find_runs


def report_runs(
    runs: list[Path],
    baseline: Path | None,
    plots: Path | None,
    markdown: Path | None,
    html: Path | None,
    layout: str | None,
    metric: list[str] | None,
    runs_dir: Path | None,
    weight: list[str] | None,
    *,
    as_json: bool,
    protocol: bool,
) -> None:
    """Show stored runs as tables and plots; scores them again, asks no model."""
    if layout is not None and html is not None:
        raise SpecError("--html writes our own tables, and --layout prints a paper's: give one of them at a time")
    paths = runs if baseline is None else [baseline, *runs]
    stored_runs = read_current(find_runs(run_paths(paths, runs_dir or default_runs_dir())), metric or [])
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
