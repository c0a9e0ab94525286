"""Files of results that become runs: with which data set they are matched, and which importer reads each.

An importer is a part of the group `medexam.importers`: `importer(dataset, runs_dir, most_unmatched=...)` with
`recognises(path)` and `take(path, say, measure)`, which yields the runs that a file becomes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medexam.cli import print_notice
from medexam.errors import SpecError
from medexam.plugins import load_added, ships

if TYPE_CHECKING:
    from medexam.experiments import StoredRun
    from medexam.specs import DatasetSpec

IMPORTERS = "medexam.importers"


@dataclass(frozen=True)
class ImportSettings:
    """What files of results are matched with, and how."""

    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|SPEC",
            help="The data set whose questions they answer, or a spec with it.",
        ),
    ] = None
    language: Annotated[str | None, typer.Option(help="Its language; en by default.")] = None
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A key of the data set, such as dataset.path=a.json.",
        ),
    ] = None
    measure: Annotated[
        str | None,
        typer.Option(help="The measure, such as acc_norm, or the table's column with a model's answers."),
    ] = None
    most_unmatched: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="The share of samples that may fit no question, or whose answers fit no option (0 to 1).",
        ),
    ] = 0.01


def take_files(files: Sequence[Path], settings: ImportSettings, runs_dir: Path) -> "list[list[StoredRun]]":
    """Make the runs that each file of results becomes, with a line for each warning.

    Raises `SpecError` without a data set, and for a file that no importer recognises.
    """
    dataset = _read_dataset(settings)
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


def _read_dataset(settings: ImportSettings) -> "DatasetSpec":
    from medexam.specs import DatasetSpec, load_document, parse_overrides, validate

    dataset: Any = settings.dataset or {}
    if settings.dataset is not None and settings.dataset.endswith((".yaml", ".yml")):
        dataset = load_document(settings.dataset).get("dataset", {})
    tree: dict[str, Any] = {"name": dataset} if isinstance(dataset, str) else {**dataset}
    if settings.language is not None:
        tree["language"] = settings.language
    for path, value in parse_overrides(settings.overrides or ()).items():
        *parents, key = path.removeprefix("dataset.").split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[key] = value
    if not {"name", "kind"} & tree.keys():
        raise SpecError(
            "name the data set whose questions the files answer, such as --dataset NAME --language en, or a spec of "
            "your own questions: --dataset SPEC.yaml"
        )
    return validate(DatasetSpec, tree)


def _find_importer(path: Path) -> Any:
    """Find the first importer that recognises a file; those of other packages are asked before the one that ships."""
    importers = load_added(IMPORTERS)
    for name in sorted(importers, key=lambda name: ships(name, IMPORTERS)):
        if importers[name].recognises(path):
            return importers[name]
    raise SpecError(f"{path}: nothing that is installed reads it: give a file of results that is there")
