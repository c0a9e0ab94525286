"""`medexam import`: results of other harnesses as runs, without asking a model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medexam.cli.options import JsonOption, RunsDirOption, settings_as_flags
from medexam.cli.views.output import print_json
from medexam.cli.views.runs import print_notice, print_tables
from medexam.errors import SpecError
from medexam.settings import Setting

if TYPE_CHECKING:
    from medexam.experiments.imports.importing import Imported
    from medexam.specs import DatasetSpec

MOST_UNMATCHED = 0.01
INSIDE = ".imported"
"""The folder in the runs directory where `medexam compare` keeps the runs of files; other commands do not list it."""


@dataclass(frozen=True)
class ImportSettings:
    """What files of results are matched with, and how."""

    dataset: Annotated[
        str | None,
        Setting("Files of results: the data set whose questions they answer, or a spec with it.", metavar="NAME|SPEC"),
    ] = None
    language: Annotated[str | None, Setting("Files of results: its language; en by default.")] = None
    overrides: Annotated[
        tuple[str, ...],
        Setting("Files of results: a key of the data set, such as dataset.path=a.json.", "--set", metavar="KEY=VALUE"),
    ] = ()
    measure: Annotated[
        str | None,
        Setting(
            "Files of results: the measure, such as acc_norm, or the table's column, that holds a model's answers."
        ),
    ] = None
    most_unmatched: Annotated[
        float,
        Setting(
            "Files of results: the share of samples that may match no question, or whose answers no option, 0 to 1.",
            min=0,
            max=1,
        ),
    ] = MOST_UNMATCHED

    def read_dataset(self) -> "DatasetSpec | None":
        """Read the data set that is named; None if none is. Raises `SpecError` if there is no such data set."""
        from medexam.specs import DatasetSpec, load_document, parse_overrides
        from medexam.specs.matrix import put
        from medexam.specs.validation import validate

        tree: dict[str, Any] = {"dataset": {}}
        is_spec = self.dataset is not None and self.dataset.endswith((".yaml", ".yml"))
        if self.dataset is not None and is_spec:
            tree["dataset"] = load_document(self.dataset).get("dataset", {})
        options = {"name": None if is_spec else self.dataset, "language": self.language}
        changes = {key: value for key, value in options.items() if value is not None} | parse_overrides(self.overrides)
        for path, value in changes.items():
            put(tree, f"dataset.{path.removeprefix('dataset.')}", value)
        dataset = tree["dataset"] if isinstance(tree["dataset"], dict) else {"name": tree["dataset"]}
        return validate(DatasetSpec, dataset) if {"name", "kind"} & dataset.keys() else None


@settings_as_flags
def import_results(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="samples_*.jsonl of lm-evaluation-harness or Every Eval Ever, a log of Inspect, scenario_state.json "
            "of HELM, predictions of OpenCompass, reviews of EvalScope, details of lighteval, *_allresults.json of "
            "simple-evals, or a table of question and answer.",
        ),
    ],
    settings: ImportSettings,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make runs of the results of other harnesses; asks no model."""
    from medexam.experiments.store.paths import default_runs_dir

    imports_by_file = take_files(files, settings, settings.read_dataset(), runs_dir or default_runs_dir())
    imports = [entry for runs in imports_by_file for entry in runs]
    if as_json:
        print_json([_document(entry) for entry in imports])
    else:
        _print(imports)
    for entry in imports:
        print_notice(f"{entry.run.folder.path}")


def take_files(
    files: Sequence[Path], settings: ImportSettings, dataset: "DatasetSpec | None", runs_dir: Path
) -> "list[list[Imported]]":
    """Make the runs that each file of results becomes, with a line for each warning.

    Raises `SpecError` without a data set.
    """
    from medexam.experiments.imports.importing import Importer

    if dataset is None:
        raise SpecError(
            f"{files[0]} is a file of results: name the data set whose questions it answers, such as --dataset NAME "
            "--language en, or a spec of your own questions: --dataset SPEC.yaml"
        )
    importer = Importer(dataset, runs_dir, most_unmatched=settings.most_unmatched)
    imports_by_file = [list(importer.take(file, print_notice, settings.measure)) for file in files]
    for entry in chain.from_iterable(imports_by_file):
        for warning in entry.run.record.warnings:
            print_notice(f"warning: {entry.run.program}: {warning}")
    return imports_by_file


def replace_files(runs: Sequence[Path], settings: ImportSettings, runs_dir: Path) -> list[Path]:
    """Return `runs` with the run folders that its files of results become, in a folder inside `runs_dir`.

    Without `--dataset` it is that of the first run among them.
    """
    from medexam.experiments.store.paths import run_paths, without_bystanders

    runs = without_bystanders(runs)
    files = [run for run in runs if run.is_file()]
    if not files:
        return run_paths(runs, runs_dir)
    run_folders = iter(run_paths([run for run in runs if run not in files], runs_dir))
    paths = {run: [run] if run in files else [next(run_folders)] for run in runs}
    dataset = settings.read_dataset() or _dataset_of(path for run, (path,) in paths.items() if run not in files)
    for file, imports in zip(files, take_files(files, settings, dataset, runs_dir / INSIDE), strict=True):
        paths[file] = [entry.run.folder.path for entry in imports]
    return [path for run in runs for path in paths[run]]


def _dataset_of(paths: Iterable[Path]) -> "DatasetSpec | None":
    """Return the whole data set of the first run; None if there is no run."""
    from medexam.experiments.store.run_folder import find_runs

    folder = next(iter(find_runs(paths)), None)
    return None if folder is None else folder.read_record().cell.dataset.whole


def _document(entry: "Imported") -> dict[str, Any]:
    from medexam.experiments.store.stored_run import run_document

    return {**run_document(entry.run), "imported": entry.account}


def _print(imports: "list[Imported]") -> None:
    from medexam.cli.terminal import Terminal
    from medexam.tables import NONE, Table, percent

    rows = []
    for entry in imports:
        summary, metrics = entry.account, entry.run.metrics
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
                f"{metrics.n:,}",
                percent(metrics.right / metrics.n) if metrics.n else NONE,
                NONE if summary["stated"] is None else percent(summary["stated"]),
            )
        )
    headers = ("Run", "Model", "Matched", "Left out", "n", "Right, %", "By the harness, %")
    caption = "By the harness: the score that its own file states, over all of its samples."
    print_tables(Terminal(), [(Table("Imported", headers, tuple(rows), text_columns=4), caption)])
