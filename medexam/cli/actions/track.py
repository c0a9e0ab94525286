"""What `medexam track` does: find runs and optimizations, and send them to MLflow."""

import sys
from pathlib import Path

from medexam.cli.views.output import print_pages
from medexam.cli.views.runs import print_notice, read_current
from medexam.experiments.optimize.folder import OptimizationFolder
from medexam.experiments.optimize.optimization import load_optimization
from medexam.experiments.optimize.tracking import track_optimization
from medexam.experiments.store.paths import default_runs_dir, run_paths
from medexam.experiments.store.run_folder import RunFolder, find_runs
from medexam.experiments.track.copies import default_tracking_uri
from medexam.experiments.track.runs import track_runs


def send_runs(runs: list[Path], tracking_uri: str | None, runs_dir: Path | None) -> None:
    """Send stored runs and optimizations to MLflow; what is already there is updated."""
    paths = run_paths(runs, runs_dir or default_runs_dir())
    optimizations = list(dict.fromkeys(folder for path in paths for folder in _optimizations(path)))
    stored_runs = read_current(find_runs(path for path in paths if _holds_runs(path)))
    first_path = stored_runs[0].folder.path if stored_runs else optimizations[0]
    uri = tracking_uri or default_tracking_uri(runs_dir or first_path.resolve().parent)
    for run in stored_runs:
        if pending := run.metrics.selected - run.metrics.n:
            print_notice(f"warning: {run.folder.name} is sent as it is, with {pending:,} of its questions pending")
    copies = list(zip([run.folder.name for run in stored_runs], track_runs(stored_runs, tracking_uri=uri), strict=True))
    for folder in optimizations:
        optimization = load_optimization(OptimizationFolder(folder))
        copies.append((folder.name, track_optimization(optimization, tracking_uri=uri)))
    for name, copy in copies:
        sys.stdout.write(f"{name} is MLflow run {copy.run_id}\n")
    print_pages([copy for _, copy in copies], uri)


def _optimizations(path: Path) -> list[Path]:
    """Find the optimization at `path`, or those in it."""
    inside = sorted(path.iterdir()) if path.is_dir() else []
    return [folder.resolve() for folder in (path, *inside) if OptimizationFolder(folder).exists()]


def _holds_runs(path: Path) -> bool:
    """Return whether runs are to be looked for at `path`: where no optimization is, it must hold some."""
    return not _optimizations(path) or any(RunFolder(folder).exists() for folder in (path, *path.iterdir()))
