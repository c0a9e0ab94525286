"""What `medexam board` does: put models side by side over several benchmarks, and show or write that."""

import sys
from pathlib import Path

from medexam.cli.views.output import print_json, write_file
from medexam.cli.views.runs import read_current
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.leaderboard import make_leaderboard
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.store.paths import default_runs_dir, run_paths
from medexam.experiments.store.run_folder import find_runs


def show_board(
    runs: list[Path] | None,
    runs_dir: Path | None,
    *,
    markdown: Path | None,
    latex: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Show models over several benchmarks: scores, mean rank, and what is missing."""
    root = runs_dir or default_runs_dir()
    stored_runs = read_current(find_runs(run_paths(runs, root) if runs else [root]))
    leaderboard = make_leaderboard(stored_runs)
    if markdown is not None:
        write_file(leaderboard.markdown(), markdown)
    if latex is not None:
        write_file(leaderboard.latex(), latex, "--latex")
    if html is not None:
        leaderboard.write_page(html)
        sys.stderr.write(f"wrote {html}\n")
    if as_json:
        print_json(leaderboard.document())
    else:
        print_blocks(Terminal(), leaderboard.blocks())
