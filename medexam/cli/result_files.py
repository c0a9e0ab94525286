"""Files of results of other harnesses where a command takes runs: how they are matched, and the runs that they become.

What reads them is an importer that a package adds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from medexam.cli.flags.result_files import ImportSettings
from medexam.cli.views.runs import print_notice
from medexam.errors import SpecError
from medexam.experiments.store.paths import run_paths, without_bystanders
from medexam.experiments.store.run_folder import find_runs
from medexam.experiments.store.stored_run import StoredRun
from medexam.plugins import load_added, ships
from medexam.specs import DatasetSpec, load_document, parse_overrides
from medexam.specs.matrix import put
from medexam.specs.validation import validate

IMPORTERS = "medexam.importers"
INSIDE = ".imported"
"""The folder in the runs directory where `medexam compare` keeps the runs of files; other commands do not list it."""


class ResultImporter(Protocol):
    """Makes runs of files of results, all on one data set."""

    def __init__(self, dataset: DatasetSpec, runs_dir: Path, *, most_unmatched: float) -> None:
        """Load the data set; runs go to `runs_dir`, unless a larger share than `most_unmatched` fits no question."""

    @staticmethod
    def recognises(path: Path) -> bool:
        """Return whether this importer reads a file or folder, or says what is wrong with it."""

    def take(self, path: Path, say: Callable[[str], None], measure: str | None) -> Iterator[StoredRun]:
        """Yield the runs that a file becomes, one for each measure; only `measure` if it is named.

        `environment.json` of each says under `imported` how the file was read.
        """


def _read_dataset(settings: ImportSettings) -> DatasetSpec | None:
    """Read the data set that is named; None if none is. Raises `SpecError` if there is no such data set."""
    tree: dict[str, Any] = {"dataset": {}}
    is_spec = settings.dataset is not None and settings.dataset.endswith((".yaml", ".yml"))
    if settings.dataset is not None and is_spec:
        tree["dataset"] = load_document(settings.dataset).get("dataset", {})
    options = {"name": None if is_spec else settings.dataset, "language": settings.language}
    changes = {key: value for key, value in options.items() if value is not None} | parse_overrides(settings.overrides)
    for path, value in changes.items():
        put(tree, f"dataset.{path.removeprefix('dataset.')}", value)
    dataset = tree["dataset"] if isinstance(tree["dataset"], dict) else {"name": tree["dataset"]}
    return validate(DatasetSpec, dataset) if {"name", "kind"} & dataset.keys() else None


def take_files(
    files: Sequence[Path], settings: ImportSettings, runs_dir: Path, dataset: DatasetSpec | None = None
) -> list[list[StoredRun]]:
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
    classes = [_find_importer(file) for file in files]
    importers = {
        each: each(dataset, runs_dir, most_unmatched=settings.most_unmatched) for each in dict.fromkeys(classes)
    }
    runs_by_file = [
        list(importers[each].take(file, print_notice, settings.measure))
        for each, file in zip(classes, files, strict=True)
    ]
    for run in chain.from_iterable(runs_by_file):
        for warning in run.record.warnings:
            print_notice(f"warning: {run.program}: {warning}")
    return runs_by_file


def _find_importer(path: Path) -> type[ResultImporter]:
    """Find the first importer that recognises a file; those of other packages are asked before the one that ships."""
    importers: dict[str, type[ResultImporter]] = load_added(IMPORTERS)
    for name in sorted(importers, key=lambda name: ships(name, IMPORTERS)):
        if importers[name].recognises(path):
            return importers[name]
    raise SpecError(f"{path}: nothing that is installed reads it: give a file of results that is there")


def replace_files(runs: Sequence[Path], settings: ImportSettings, runs_dir: Path) -> list[Path]:
    """Return `runs` with the run folders that its files of results become, in a folder inside `runs_dir`.

    Without `--dataset` it is that of the first run among them.
    """
    runs = without_bystanders(runs)
    files = [run for run in runs if run.is_file()]
    if not files:
        return run_paths(runs, runs_dir)
    run_folders = iter(run_paths([run for run in runs if run not in files], runs_dir))
    paths = {run: [run] if run in files else [next(run_folders)] for run in runs}
    dataset = _dataset_of(path for run, (path,) in paths.items() if run not in files)
    for file, imported in zip(files, take_files(files, settings, runs_dir / INSIDE, dataset), strict=True):
        paths[file] = [run.folder.path for run in imported]
    return [path for run in runs for path in paths[run]]


def _dataset_of(paths: Iterable[Path]) -> DatasetSpec | None:
    """Return the whole data set of the first run; None if there is no run."""
    folder = next(iter(find_runs(paths)), None)
    return None if folder is None else folder.read_record().cell.dataset.whole
