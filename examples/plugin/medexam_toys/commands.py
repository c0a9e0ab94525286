"""A command: a function whose arguments typer reads."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import RUNS, RunsDirOption
from medexam.experiments import Terminal, find_runs, print_blocks
from medexam.tables import Table


def lengths(runs: Annotated[list[Path], typer.Argument(metavar="RUN")], runs_dir: RunsDirOption = RUNS) -> None:
    """Count the words of the replies of stored runs; asks no model."""
    rows = []
    for folder in find_runs(runs, runs_dir):
        counts = [len((prediction.reply or "").split()) for prediction in folder.scan_predictions()]
        rows.append((folder.path.name, f"{len(counts):,}", f"{sum(counts):,}"))
    print_blocks(Terminal(), [Table("Lengths", ("Run", "Replies", "Words"), tuple(rows))])
