"""Where runs lie, unless a command is told otherwise, and which one a text means."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from medexam.errors import RunFolderError
from medexam.text import nearest

MAX_MATCHES = 5
"""How many runs are named that a text may mean."""
_BYSTANDER = re.compile(r"mlartifacts|mlflow\.db.*|.*\.html")
"""What may lie in a folder of runs and is none."""


def default_runs_dir() -> Path:
    """Return `$MEDEXAM_RUNS`, else `./runs`."""
    return Path(os.environ.get("MEDEXAM_RUNS") or "runs")


def run_paths(runs: Iterable[Path], runs_dir: Path) -> list[Path]:
    """Return each of `runs` as a path: itself if it exists, else the run in `runs_dir` that it means, as `find_path`
    says.
    """
    return [run if run.exists() else find_path(str(run), runs_dir) for run in without_bystanders([*runs])]


def without_bystanders(paths: Sequence[Path]) -> list[Path]:
    """Return `paths` without MLflow's files and pages, which a shell's `runs/*` names too; all, if nothing else is
    named.
    """
    runs = [path for path in paths if not (_BYSTANDER.fullmatch(path.name) and path.exists())]
    return runs or [*paths]


def find_path(run: str, runs_dir: Path) -> Path:
    """Find the run of that id in `runs_dir`, or in the folder before it; or the only one whose id or digest begins so.

    A path that does not exist is given back where no run is meant. Raises `RunFolderError` if several are, or if ids
    come near.
    """
    path = Path(run)
    if path.name != run and path.parent.is_dir():
        return find_path(path.name, path.parent)
    full_path = runs_dir / run
    if full_path.exists() or not runs_dir.is_dir() or Path(run).name != run:
        return full_path
    names = sorted(child.name for child in runs_dir.iterdir() if child.is_dir())
    matches = [name for name in names if name.startswith(run) or name.rpartition("-")[2].startswith(run)]
    if len(matches) > 1:
        remainder = f" and {len(matches) - MAX_MATCHES} more" if len(matches) > MAX_MATCHES else ""
        raise RunFolderError(
            f"{run} may be {len(matches)} runs in {runs_dir}: {', '.join(matches[:MAX_MATCHES])}{remainder}; give "
            "more of the id, or the first digits behind its last hyphen"
        )
    suggestion = "" if matches else nearest(run, names, similarity=0.7)
    if suggestion:
        raise RunFolderError(f"no run {run} in {runs_dir}: did you mean {suggestion}?")
    return runs_dir / matches[0] if matches else full_path
