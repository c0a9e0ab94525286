"""Where runs lie, unless a command is told otherwise."""

import os
from collections.abc import Iterable
from pathlib import Path


def default_runs_dir() -> Path:
    """`$MEDEXAM_RUNS`, else `./runs`."""
    return Path(os.environ.get("MEDEXAM_RUNS") or "runs")


def run_paths(runs: Iterable[Path], runs_dir: Path) -> list[Path]:
    """Each of `runs` as a path: itself where that exists, else the run of that id in `runs_dir`."""
    return [run if run.exists() else runs_dir / run for run in runs]
