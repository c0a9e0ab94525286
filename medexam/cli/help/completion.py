"""What a shell is told when a reader completes a word of a command: names of specs, and ids of runs.

A word is completed while the reader waits, so this reads names of files and imports nothing heavy.
"""

from pathlib import Path

import typer

from medexam.experiments.store.paths import default_runs_dir

SUFFIXES = {".yaml", ".yml"}


def complete_spec(incomplete: str) -> list[str]:
    """List shipped experiments, data sets, and YAML files that begin so."""
    from medexam.specs import library_names
    from medexam.specs.catalogue import CATALOGUE

    names = {*library_names(), *CATALOGUE}
    files = {str(path) for path in _beside(incomplete) if path.suffix in SUFFIXES}
    return sorted(name for name in names | files if name.startswith(incomplete))


def complete_run(context: typer.Context, incomplete: str) -> list[str]:
    """List ids of runs in the runs directory that begin so, digests that do, and folders."""
    root = context.params.get("runs_dir") or default_runs_dir()
    ids = [child.name for child in root.iterdir() if (child / "spec.json").is_file()] if root.is_dir() else []
    digests = (name.rpartition("-")[2] for name in ids)
    folders = (str(path) for path in _beside(incomplete) if path.is_dir())
    return sorted({name for name in (*ids, *digests, *folders) if name.startswith(incomplete)})


def _beside(incomplete: str) -> list[Path]:
    """List what lies where the path that is being written points to."""
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    return list(folder.iterdir()) if folder.is_dir() else []
