"""Files of results of other harnesses where a command takes runs: how they are matched, and the runs that they become.

What reads them is an importer that a package adds: `importer(dataset, runs_dir, most_unmatched=...)` with
`recognises(path)` and `take(path, say, measure)`, which yields the runs that a file becomes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medexam.cli.views.runs import print_notice
from medexam.errors import SpecError

if TYPE_CHECKING:
    from medexam.experiments.store.stored_run import StoredRun
    from medexam.specs import DatasetSpec

IMPORTERS = "medexam.importers"
INSIDE = ".imported"
"""The folder in the runs directory where `medexam compare` keeps the runs of files; other commands do not list it."""


@dataclass(frozen=True)
class ImportSettings:
    """What files of results are matched with, and how."""

    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|SPEC",
            help="Files of results: the data set whose questions they answer, or a spec with it.",
        ),
    ] = None
    language: Annotated[str | None, typer.Option(help="Files of results: its language; en by default.")] = None
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Files of results: a key of the data set, such as dataset.path=a.json.",
        ),
    ] = None
    measure: Annotated[
        str | None,
        typer.Option(
            help="Files of results: the measure, such as acc_norm, or the table's column with a model's answers."
        ),
    ] = None
    most_unmatched: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Files of results: the share of samples that may fit no question, or whose answers fit no option "
            "(0 to 1).",
        ),
    ] = 0.01


def take_files(
    files: Sequence[Path], settings: ImportSettings, runs_dir: Path, dataset: "DatasetSpec | None" = None
) -> "list[list[StoredRun]]":
    """Make the runs that each file of results becomes, with a line for each warning.

    `dataset` is for settings that name none. Raises `SpecError` without a data set, and for a file that no importer
    recognises.
    """
    dataset = _read_dataset(settings) or dataset
    if dataset is None:
        raise SpecError(
            f"{files[0]} is read as a file of results: name the data set whose questions it answers, such as "
            "--dataset NAME --language en, or a spec of your own questions: --dataset SPEC.yaml"
        )
    kinds = [_find_importer(file) for file in files]
    importers = {kind: kind(dataset, runs_dir, most_unmatched=settings.most_unmatched) for kind in dict.fromkeys(kinds)}
    runs_by_file = [
        list(importers[kind].take(file, print_notice, settings.measure))
        for kind, file in zip(kinds, files, strict=True)
    ]
    for run in (run for runs in runs_by_file for run in runs):
        for warning in run.record.warnings:
            print_notice(f"warning: {run.program}: {warning}")
    return runs_by_file


def _read_dataset(settings: ImportSettings) -> "DatasetSpec | None":
    """Read the data set that is named; None if none is. Raises `SpecError` if there is no such data set."""
    from medexam.specs import DatasetSpec, load_document, parse_overrides
    from medexam.specs.matrix import put
    from medexam.specs.validation import validate

    dataset: Any = {"name": settings.dataset} if settings.dataset else {}
    if settings.dataset is not None and settings.dataset.endswith((".yaml", ".yml")):
        dataset = load_document(settings.dataset).get("dataset", {})
        dataset = dataset if isinstance(dataset, dict) else {"name": dataset}
    tree = {"dataset": dataset | ({"language": settings.language} if settings.language else {})}
    for path, value in parse_overrides(settings.overrides or ()).items():
        put(tree, f"dataset.{path.removeprefix('dataset.')}", value)
    return validate(DatasetSpec, tree["dataset"]) if {"name", "kind"} & tree["dataset"].keys() else None


def _find_importer(path: Path) -> Any:
    """Find the first importer that recognises a file; those of other packages are asked before the one that ships."""
    from medexam.plugins import load_added, ships

    importers = load_added(IMPORTERS)
    for name in sorted(importers, key=lambda name: ships(name, IMPORTERS)):
        if importers[name].recognises(path):
            return importers[name]
    raise SpecError(f"{path}: nothing that is installed reads it: give a file of results that is there")


def replace_files(runs: Sequence[Path], settings: ImportSettings, runs_dir: Path) -> list[Path]:
    """Return `runs` with the run folders that its files of results become, in a folder inside `runs_dir`.

    Without `--dataset` it is that of the first run among them.
    """
    from medexam.experiments.store.paths import run_paths, without_bystanders
    from medexam.experiments.store.run_folder import find_runs

    runs = without_bystanders(runs)
    files = [run for run in runs if run.is_file()]
    if not files:
        return run_paths(runs, runs_dir)
    folders = run_paths([run for run in runs if run not in files], runs_dir)
    first = next(iter(find_runs(folders)), None) if folders else None
    dataset = None if first is None else first.read_record().cell.dataset.whole
    imports = iter(take_files(files, settings, runs_dir / INSIDE, dataset))
    others = iter(folders)
    paths: list[Path] = []
    for run in runs:
        paths += [made.folder.path for made in next(imports)] if run in files else [next(others)]
    return paths
