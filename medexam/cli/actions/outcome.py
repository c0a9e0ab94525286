"""What `medexam run` says of runs that have ended."""

import sys
from pathlib import Path

from medexam.cli.views.output import print_json
from medexam.cli.views.runs import print_notice
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.leaderboard import make_leaderboard
from medexam.experiments.report.run_blocks import overview_blocks
from medexam.experiments.report.run_tables import failure_tables
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.store.stored_run import StoredRun, describe_lookups, run_document


def print_runs(runs_dir: Path, runs: list[StoredRun], *, as_json: bool) -> None:
    """Print runs as tables or JSON, what is to be known of them, and the commands that show more."""
    for run in runs:
        if (empty := describe_lookups(run.metrics)) is not None:
            print_notice(f"warning: {run.folder.name}: {empty}")
    if as_json:
        print_json([run_document(run) for run in runs])
    if as_json or not runs:
        return

    print_blocks(Terminal(), [*overview_blocks(runs), *failure_tables(runs)])
    if len({run.record.cell.dataset.label for run in runs}) > 1 and len({run.record.cell.name for run in runs}) > 1:
        print_blocks(Terminal(), make_leaderboard(runs).blocks())
    for run in runs:
        if run.note is not None:
            print_notice(f"warning: {run.folder.name}: {run.note}")
    sys.stderr.write(f"Runs are in {runs_dir}.\n")
    sys.stderr.write(f"A page of every question and reply: {sys.argv[0]} report {runs_dir} --html report.html\n")
