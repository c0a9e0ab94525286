"""`medexam import` and `medexam export`: results of other harnesses as runs, and runs as their files; asks no model."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from medexam.cli import RUNS, JsonOption, OverridesOption, RunsDirOption
from medexam.errors import SpecError


def import_results(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="samples_*.jsonl of lm-evaluation-harness or Every Eval Ever, a log of Inspect, scenario_state.json "
            "of HELM, predictions of OpenCompass, reviews of EvalScope, details of lighteval, *_allresults.json of "
            "simple-evals, or a table of question and answer.",
        ),
    ],
    dataset: Annotated[
        str | None,
        typer.Option(metavar="NAME|SPEC", help="The data set whose questions they answer, or a spec with it."),
    ] = None,
    language: Annotated[str | None, typer.Option(help="Its language; en by default.")] = None,
    overrides: OverridesOption = None,
    measure: Annotated[
        str | None,
        typer.Option(help="The measure, such as acc_norm, or the table's column with a model's answers."),
    ] = None,
    most_unmatched: Annotated[
        float,
        typer.Option(min=0, max=1, help="The share of samples that may fit no question or option (0 to 1)."),
    ] = 0.01,
    runs_dir: RunsDirOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Make runs of the results of other harnesses; asks no model.

    For example:
        medexam import samples_headqa_en.jsonl --dataset headqa_v1
    """
    from medexam.cli import print_json
    from medexam.experiments import Terminal, print_blocks
    from medexam.tables import NONE, Table, percent
    from medexam.text import print_notice
    from medexam_companions.harnesses.result_files import take_files

    spec = _read_dataset(dataset, language, overrides)
    by_file = take_files(files, spec, runs_dir, measure, most_unmatched)
    imports = [run for runs in by_file for run in runs]
    # An importer of another package need not say how it matched.
    accounts = [run.environment.get("imported", {}) for run in imports]
    if as_json:
        documents = zip((run.document() for run in imports), accounts, strict=True)
        print_json([{**document, "imported": account} for document, account in documents])
    else:
        left_out = ("unmatched", "ambiguous", "repeated", "failed")
        rows = tuple(
            (
                run.program,
                run.model or NONE,
                ", ".join(f"{count:,} by {method}" for method, count in account.get("by", {}).items()) or NONE,
                ", ".join(f"{account[name]:,} {name}" for name in left_out if account.get(name)) or "none",
                f"{run.metrics.n:,}",
                percent(run.score),
                percent(account.get("stated")),
            )
            for run, account in zip(imports, accounts, strict=True)
        )
        headers = ("Run", "Model", "Matched", "Left out", "n", "Score, %", "By the harness, %")
        caption = (
            "Score: the share of right options, or the first measure of answers in words. By the harness: the score "
            "that its own file states, over all of its samples."
        )
        print_blocks(Terminal(), [Table("Imported", headers, rows, text_columns=4, caption=caption)])
    for run in imports:
        print_notice(f"{run.folder.path}")


def _read_dataset(name: str | None, language: str | None, overrides: list[str] | None) -> Any:
    """Read the data set that is named, or that of a spec, with the keys that are set."""
    from medexam.specs import DatasetSpec, load_document, parse_overrides, put, validate

    dataset: Any = name or {}
    if name is not None and name.endswith((".yaml", ".yml")):
        dataset = load_document(name).get("dataset", {})
    tree: dict[str, Any] = {"name": dataset} if isinstance(dataset, str) else {**dataset}
    tree |= {"language": language} if language else {}
    for path, value in parse_overrides(overrides or ()).items():
        put(tree, path.removeprefix("dataset."), value)
    if not {"name", "kind"} & tree.keys():
        raise SpecError(
            "name the data set whose questions the files answer, such as --dataset NAME --language en, or a spec of "
            "your own questions: --dataset SPEC.yaml"
        )
    return validate(DatasetSpec, tree)


def export(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run folders, folders of runs, or ids in the runs directory.")
    ],
    to: Annotated[
        Literal["lm-eval", "inspect", "every-eval-ever", "hub"],
        typer.Option(help="The format; hub is a data set for the Hugging Face hub with its card."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write into.")] = Path("export"),
    runs_dir: RunsDirOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Write runs as files of lm-evaluation-harness, Inspect or Every Eval Ever, or for the hub; sends nothing.

    For example:
        medexam export 3c2aae --to lm-eval --out export
    """
    from medexam.cli import print_json, read_current
    from medexam.experiments import find_runs
    from medexam_companions.harnesses.exports.formats import export_runs

    stored_runs = read_current(find_runs(runs, runs_dir))
    paths = export_runs(stored_runs, to, out)
    if as_json:
        print_json([str(path) for path in paths])
    else:
        sys.stdout.writelines(f"{path}\n" for path in paths)
