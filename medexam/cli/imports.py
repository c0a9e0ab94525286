"""`medexam import`: results of other harnesses as runs, without asking a model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medexam.cli.options import JsonOption, RunsDirOption, settings_as_flags
from medexam.cli.views.output import print_json
from medexam.cli.views.runs import print_tables, say
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
        """The data set that is named; None if none is. Raises `SpecError` if there is no such data set."""
        from medexam.specs import DatasetSpec, load_document, parse_overrides
        from medexam.specs.matrix import put
        from medexam.specs.validation import validate

        tree: dict[str, Any] = {"dataset": {}}
        is_spec = self.dataset is not None and self.dataset.endswith((".yaml", ".yml"))
        if self.dataset is not None and is_spec:
            tree["dataset"] = load_document(self.dataset).get("dataset", {})
        told = {"name": None if is_spec else self.dataset, "language": self.language}
        changes = {key: value for key, value in told.items() if value is not None} | parse_overrides(self.overrides)
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

    taken = take_files(files, settings, settings.read_dataset(), runs_dir or default_runs_dir())
    found = [one for runs in taken for one in runs]
    if as_json:
        print_json([_document(one) for one in found])
    else:
        _print(found)
    for one in found:
        say(f"{one.run.folder.path}")


def take_files(
    files: Sequence[Path], settings: ImportSettings, dataset: "DatasetSpec | None", runs_dir: Path
) -> "list[list[Imported]]":
    """The runs that each file of results becomes, with a line for each warning.

    Raises `SpecError` without a data set.
    """
    from medexam.experiments.imports.importing import Importer

    if dataset is None:
        raise SpecError(
            f"{files[0]} is a file of results: name the data set whose questions it answers, such as --dataset NAME "
            "--language en, or a spec of your own questions: --dataset SPEC.yaml"
        )
    importer = Importer(dataset, runs_dir, most_unmatched=settings.most_unmatched)
    taken = [list(importer.take(file, say, settings.measure)) for file in files]
    for one in chain.from_iterable(taken):
        for warning in one.run.record.warnings:
            say(f"warning: {one.run.program}: {warning}")
    return taken


def replace_files(runs: Sequence[Path], settings: ImportSettings, runs_dir: Path) -> list[Path]:
    """`runs` with the run folders that its files of results become, in a folder of their own inside `runs_dir`.

    Without `--dataset` it is that of the first run among them.
    """
    from medexam.experiments.store.paths import run_paths, without_bystanders

    runs = without_bystanders(runs)
    files = [run for run in runs if run.is_file()]
    if not files:
        return run_paths(runs, runs_dir)
    stored = iter(run_paths([run for run in runs if run not in files], runs_dir))
    paths = {run: [run] if run in files else [next(stored)] for run in runs}
    dataset = settings.read_dataset() or _dataset_of(path for run, (path,) in paths.items() if run not in files)
    for file, found in zip(files, take_files(files, settings, dataset, runs_dir / INSIDE), strict=True):
        paths[file] = [one.run.folder.path for one in found]
    return [path for run in runs for path in paths[run]]


def _dataset_of(paths: Iterable[Path]) -> "DatasetSpec | None":
    """The whole data set of the first run; None if there is no run."""
    from medexam.experiments.store.run_folder import find_runs

    first = next(iter(find_runs(paths)), None)
    return None if first is None else first.read_record().cell.dataset.whole


def _document(one: "Imported") -> dict[str, Any]:
    from medexam.experiments.store.stored_run import run_document

    return {**run_document(one.run), "imported": one.said}


def _print(found: "list[Imported]") -> None:
    from medexam.cli.terminal import Terminal
    from medexam.formatting import NONE, percent
    from medexam.tables import Table

    rows = []
    for one in found:
        said, metrics = one.said, one.run.metrics
        ways = ", ".join(f"{count:,} by {way}" for way, count in said["by"].items())
        lost = [f"{said[name]:,} {name}" for name in ("unmatched", "ambiguous", "repeated", "failed") if said[name]]
        rows.append(
            (
                one.run.program,
                one.run.model or NONE,
                ways,
                ", ".join(lost) or "none",
                f"{metrics.n:,}",
                percent(metrics.right / metrics.n) if metrics.n else NONE,
                NONE if said["stated"] is None else percent(said["stated"]),
            )
        )
    headers = ("Run", "Model", "Matched", "Left out", "n", "Right, %", "By the harness, %")
    caption = "By the harness: the score that its own file states, over all of its samples."
    print_tables(Terminal(), [(Table("Imported", headers, tuple(rows), text_columns=4), caption)])
