"""Where runs lie, unless a command is told otherwise, and which one a text means."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from medexam.errors import RunFolderError
from medexam.text import nearest

SHOWN = 5
"""How many runs are named that a text may mean."""
_BYSTANDER = re.compile(r"mlartifacts|mlflow\.db.*|.*\.html")
"""What may lie in a folder of runs and is none."""


def default_runs_dir() -> Path:
    """`$MEDEXAM_RUNS`, else `./runs`."""
    return Path(os.environ.get("MEDEXAM_RUNS") or "runs")


def run_paths(runs: Iterable[Path], runs_dir: Path) -> list[Path]:
    """Each of `runs` as a path: itself if it exists, else the run in `runs_dir` that it means, as `find_path` says."""
    return [run if run.exists() else find_path(str(run), runs_dir) for run in without_bystanders([*runs])]


def without_bystanders(named: Sequence[Path]) -> list[Path]:
    """`named` without MLflow's files and pages, which a shell's `runs/*` names too; all, if nothing else is named."""
    runs = [path for path in named if not (_BYSTANDER.fullmatch(path.name) and path.exists())]
    return runs or [*named]


def find_path(run: str, runs_dir: Path) -> Path:
    """The run of that id in `runs_dir`, or in the folder before it; or the only one whose id or digest begins so.

    A path that does not exist is given back where no run is meant. Raises `RunFolderError` if several are, or if ids
    come near.
    """
    named = Path(run)
    if named.name != run and named.parent.is_dir():
        return find_path(named.name, named.parent)
    whole = runs_dir / run
    if whole.exists() or not runs_dir.is_dir() or Path(run).name != run:
        return whole
    names = sorted(child.name for child in runs_dir.iterdir() if child.is_dir())
    found = [name for name in names if name.startswith(run) or name.rpartition("-")[2].startswith(run)]
    if len(found) > 1:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise RunFolderError(
            f"{run} may be {len(found)} runs in {runs_dir}: {', '.join(found[:SHOWN])}{more}; give more of the id, or "
            "the first digits behind its last hyphen"
        )
    near = "" if found else nearest(run, names, alike=0.7)
    if near:
        raise RunFolderError(f"no run {run} in {runs_dir}: did you mean {near}?")
    return runs_dir / found[0] if found else whole
