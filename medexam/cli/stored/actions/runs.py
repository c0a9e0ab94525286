"""What `medexam list` and `medexam rm` do with the runs that are kept."""

import sys
from pathlib import Path
from typing import Any

import typer

from medexam.cli.views.output import print_json
from medexam.cli.views.runs import print_notice
from medexam.errors import DatasetError, EngineError, RunFolderError
from medexam.experiments.compare.equal_runs import describe_unequal
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.current import current_run
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.store.paths import default_runs_dir
from medexam.experiments.store.run_folder import METRICS, RunFolder, RunRecord, remove_runs, runs_inside
from medexam.experiments.store.stored_run import find_run, load_run, run_document, stored_scores
from medexam.measures.results import Measure
from medexam.tables import NONE, Table, percent
from medexam.text import count_of

_FAULTS = (RunFolderError, DatasetError, EngineError)
"""Of a run that cannot be read."""


def list_kept(runs_dir: Path | None, *, as_json: bool) -> None:
    """List the stored runs, the newest experiment last."""
    root = runs_dir or default_runs_dir()
    folders, records = runs_inside(root), list[tuple[RunFolder, RunRecord]]()
    if as_json:
        print_json([_document(folder, records) for folder in folders])
    elif folders:
        rows = [_row(folder, records) for folder in folders]
        title = f"{count_of(len(rows), 'run')} in {root}"
        caption = "An id is a name and a digest. In every command the first digits of the digest are enough."
        headers = ("Digest", "Name", "Began", "Scored", "Score, %")
        print_blocks(Terminal(), [Table(title, headers, tuple(rows), text_columns=3, caption=caption)])
    else:
        sys.stderr.write(f"medexam: no runs in {root}; --runs-dir names another folder, and `medexam run` makes runs\n")
    for line in describe_unequal(records):
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


def _document(folder: RunFolder, records: list[tuple[RunFolder, RunRecord]]) -> dict[str, Any]:
    """Build a run's entry in the list that `--json` prints; of one that cannot be read, what is wrong with it."""
    try:
        # A run without scores is still asked, or was killed before its end.
        run = load_run(folder) if (folder.path / METRICS).exists() else current_run(folder, print_notice)
    except _FAULTS as error:
        print_notice(f"warning: {folder.name} cannot be read: {error}")
        path = str(folder.path.resolve())
        return {"run_id": folder.name, "run_dir": path, "status": "damaged", "damage": str(error)}
    records.append((folder, run.record))
    return run_document(run)


def _row(folder: RunFolder, records: list[tuple[RunFolder, RunRecord]]) -> tuple[str, ...]:
    """Say when the run began, how many of its questions are scored, and its score; no answer is read."""
    name, _, digest = folder.name.rpartition("-")
    try:
        record, state = folder.read_record(), ""
        if (folder.path / METRICS).exists():
            scores = stored_scores(folder)
        else:
            run = current_run(folder, print_notice)
            scores, state = run.metrics, ", running" if run.running else ""
        began = str(folder.read_environment().get("started_at", NONE))[:10]
    except _FAULTS as error:
        print_notice(f"warning: {folder.name} cannot be read: {error}")
        return digest, name, NONE, "damaged", NONE
    records.append((folder, record))
    count = f"{scores.n:,}" if scores.n == scores.selected else f"{scores.n:,} of {scores.selected:,}{state}"
    return digest, name, began, count, percent(next(iter(scores.measures.values()), Measure()).value)
