"""What `medexam run` says of runs that have ended; a run that is complete is shown without its models and data."""

import os
import sys
from pathlib import Path

from medexam.cli.flags.run import RunSettings
from medexam.cli.options import check_resumed
from medexam.cli.terminal import Terminal
from medexam.cli.views.output import print_json
from medexam.cli.views.runs import print_notice
from medexam.errors import SpecError
from medexam.experiments.report.current import load_complete
from medexam.experiments.report.leaderboard import make_leaderboard
from medexam.experiments.report.run_blocks import overview_blocks
from medexam.experiments.report.run_tables import failure_tables
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.store.paths import default_runs_dir
from medexam.experiments.store.stored_run import AnyRun, describe_lookups, run_document


def show_complete(resume: str, specs: list[str], settings: RunSettings, *, as_json: bool) -> bool:
    """Show the run to continue if nothing of it is pending; return whether that was so."""
    if specs or settings.asks_otherwise or settings.fresh or settings.repeat:
        raise SpecError(
            "--resume RUN asks that run's pending questions, under its own spec: leave out SPEC, --set, --price, "
            "--limit, --fresh, --repeat and the flags that say what is asked, or run the spec without --resume"
        )
    check_resumed(resume, settings.runs_dir)
    if settings.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI"):
        return False
    complete = load_complete(resume, settings.runs_dir or default_runs_dir(), print_notice)
    if complete is not None:
        print_runs(complete.folder.path.parent, [complete], as_json=as_json)
    return complete is not None


def print_runs(runs_dir: Path, runs: list[AnyRun], *, as_json: bool) -> None:
    """Print runs as tables or JSON, what is to be known of them, and the commands that show more."""
    for run in runs:
        if (empty := describe_lookups(run.metrics)) is not None:
            print_notice(f"warning: {run.folder.name}: {empty}")
    if as_json:
        print_json([run_document(run) for run in runs])
    if as_json or not runs:
        return

    print_blocks(Terminal(), [*overview_blocks(runs), *(table for run in runs for table in failure_tables(run))])
    if len({run.record.cell.dataset.label for run in runs}) > 1 and len({run.record.cell.name for run in runs}) > 1:
        print_blocks(Terminal(), make_leaderboard(runs).blocks())
    for run in runs:
        if run.note is not None:
            print_notice(f"warning: {run.folder.name}: {run.note}")
        if run.record.stopped is not None:
            print_notice(f"{run.folder.name} {run.record.stopped.describe()}")
    sys.stderr.write(f"Runs are in {runs_dir}.\n")
    sys.stderr.write(f"A page of every question and reply: {sys.argv[0]} report {runs_dir} --html report.html\n")
