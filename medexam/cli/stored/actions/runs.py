"""What `medexam list` and `medexam rm` do with the runs that are kept."""

import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from medexam.cli.views.output import print_json
from medexam.cli.views.runs import print_notice
from medexam.errors import DatasetError, EngineError, RunFolderError
from medexam.experiments.compare.equal_runs import describe_unequal
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.current import current_run
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.store.paths import default_runs_dir
from medexam.experiments.store.run_folder import METRICS, RunFolder, remove_runs, runs_inside
from medexam.experiments.store.stored_run import StoredRun, find_run, load_run, run_document
from medexam.tables import NONE, Table, percent
from medexam.text import count_of


def list_kept(runs_dir: Path | None, *, as_json: bool) -> None:
    """List the stored runs, the newest experiment last."""
    root = runs_dir or default_runs_dir()
    runs: list[StoredRun | DamagedRun] = [_load(folder) for folder in runs_inside(root)]
    if as_json:
        print_json([run.document() if isinstance(run, DamagedRun) else run_document(run) for run in runs])
    elif not runs:
        sys.stderr.write(f"medexam: no runs in {root}; --runs-dir names another folder, and `medexam run` makes runs\n")
    else:
        _print(runs)
    for line in describe_unequal([run for run in runs if not isinstance(run, DamagedRun)]):
        print_notice(f"warning: {line}")


def remove_kept(runs: list[str], runs_dir: Path | None, *, yes: bool) -> None:
    """Remove stored runs; their copies in MLflow stay."""
    root = runs_dir or default_runs_dir()
    folders = list(dict.fromkeys(find_run(run, root) for run in runs))
    for folder in folders:
        sys.stderr.write(f"{folder.path}\n")
    if not yes and not typer.confirm(f"Remove {'this run' if len(folders) == 1 else f'these {len(folders)} runs'}?"):
        raise typer.Exit(1)
    remove_runs(folders)
    print_notice(f"removed {count_of(len(folders), 'run')}")


@dataclass(frozen=True)
class DamagedRun:
    """A run that cannot be read."""

    folder: RunFolder
    damage: str
    """What is wrong with it, and the way out."""

    def document(self) -> dict[str, str]:
        """Build its entry in the list that `--json` prints."""
        run_dir = str(self.folder.path.resolve())
        return {"run_id": self.folder.name, "run_dir": run_dir, "status": "damaged", "damage": self.damage}


def _load(folder: RunFolder) -> StoredRun | DamagedRun:
    """Load the run as it was scored last; a line for the user says what is wrong if it cannot be read."""
    try:
        # A run without scores is still asked, or was killed before its end.
        return load_run(folder) if (folder.path / METRICS).exists() else current_run(folder, print_notice)
    except (RunFolderError, DatasetError, EngineError) as error:
        print_notice(f"warning: {folder.name} cannot be read: {error}")
        return DamagedRun(folder, str(error))


def _print(runs: "list[StoredRun | DamagedRun]") -> None:
    rows = []
    for run in runs:
        name, _, digest = run.folder.name.rpartition("-")
        cells = (NONE, "damaged", NONE) if isinstance(run, DamagedRun) else _cells(run)
        rows.append((digest, name, *cells))
    title = f"{count_of(len(rows), 'run')} in {runs[0].folder.path.parent}"
    caption = "An id is a name and a digest. In every command the first digits of the digest are enough."
    headers = ("Digest", "Name", "Began", "Scored", "Score, %")
    print_blocks(Terminal(), [Table(title, headers, tuple(rows), text_columns=3, caption=caption)])


def _cells(run: StoredRun) -> tuple[str, str, str]:
    """Say when the run began, how many of its questions are scored, and its score."""
    count = run.metrics.n
    state = ", running" if run.running else ""
    return (
        str(run.environment.get("started_at", NONE))[:10],
        f"{count:,}" if run.complete else f"{count:,} of {run.metrics.selected:,}{state}",
        percent(run.score),
    )
