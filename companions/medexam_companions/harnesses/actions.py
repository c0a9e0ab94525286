"""What `medexam import` and `medexam export` do: runs of files of results, and files of runs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.cli import (
    ImportedRun,
    ImportSettings,
    Terminal,
    print_json,
    print_notice,
    print_tables,
    read_current,
    take_files,
)
from medexam.experiments import default_runs_dir, find_runs, run_document, run_paths
from medexam.tables import NONE, Table, percent
from medexam_companions.harnesses.exports.writing import Format, export_runs


def import_files(files: Sequence[Path], settings: ImportSettings, runs_dir: Path | None, *, as_json: bool) -> None:
    """Make runs of files of results and print them."""
    imports_by_file = take_files(files, settings, runs_dir or default_runs_dir())
    imports = [entry for runs in imports_by_file for entry in runs]
    if as_json:
        print_json([_document(entry) for entry in imports])
    else:
        _print(imports)
    for entry in imports:
        print_notice(f"{entry.run.folder.path}")


def _document(entry: ImportedRun) -> dict[str, Any]:
    return {**run_document(entry.run), "imported": entry.account}


def _print(imports: list[ImportedRun]) -> None:
    rows = []
    for entry in imports:
        summary = entry.account
        ways = ", ".join(f"{count:,} by {method}" for method, count in summary["by"].items())
        gaps = [
            f"{summary[name]:,} {name}" for name in ("unmatched", "ambiguous", "repeated", "failed") if summary[name]
        ]
        rows.append(
            (
                entry.run.program,
                entry.run.model or NONE,
                ways,
                ", ".join(gaps) or "none",
                f"{entry.run.metrics.n:,}",
                percent(entry.run.score),
                NONE if summary["stated"] is None else percent(summary["stated"]),
            )
        )
    headers = ("Run", "Model", "Matched", "Left out", "n", "Score, %", "By the harness, %")
    caption = (
        "Score: the share of right options, or the first measure of answers in words. By the harness: the score that "
        "its own file states, over all of its samples."
    )
    print_tables(Terminal(), [(Table("Imported", headers, tuple(rows), text_columns=4), caption)])


def export_stored(runs: Sequence[Path], to: Format, out: Path, runs_dir: Path | None, *, as_json: bool) -> None:
    """Write stored runs as files of another harness or for the hub, and print their paths."""
    stored_runs = read_current(find_runs(run_paths(runs, runs_dir or default_runs_dir())))
    paths = export_runs(stored_runs, to, out)
    if as_json:
        print_json([str(path) for path in paths])
    else:
        sys.stdout.writelines(f"{path}\n" for path in paths)
