"""Files of results that become runs, each by the importer that recognises it.

An importer is a part of the group `medexam.importers`: `importer(dataset, runs_dir, most_unmatched=...)` with
`recognises(path)` and `take(path, say, measure)`, which yields the runs that a file becomes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medexam.errors import SpecError
from medexam.plugins import load_added, ships
from medexam.text import print_notice

if TYPE_CHECKING:
    from medexam.experiments import StoredRun
    from medexam.specs import DatasetSpec

IMPORTERS = "medexam.importers"


def take_files(
    files: Sequence[Path],
    dataset: "DatasetSpec",
    runs_dir: Path,
    measure: str | None = None,
    most_unmatched: float = 0.01,
) -> "list[list[StoredRun]]":
    """Make the runs that each file of results becomes, with a line for each warning.

    Raises `SpecError` for a file that no importer recognises.
    """
    kinds = [_find_importer(file) for file in files]
    importers = {kind: kind(dataset, runs_dir, most_unmatched=most_unmatched) for kind in dict.fromkeys(kinds)}
    runs_by_file = [
        list(importers[kind].take(file, print_notice, measure)) for kind, file in zip(kinds, files, strict=True)
    ]
    for run in (run for runs in runs_by_file for run in runs):
        for warning in run.record.warnings:
            print_notice(f"warning: {run.program}: {warning}")
    return runs_by_file


def _find_importer(path: Path) -> Any:
    """Find the first importer that recognises a file; those of other packages are asked before the one that ships."""
    importers = load_added(IMPORTERS)
    for name in sorted(importers, key=lambda name: ships(name, IMPORTERS)):
        if importers[name].recognises(path):
            return importers[name]
    raise SpecError(f"{path}: nothing that is installed reads it: give a file of results that is there")
