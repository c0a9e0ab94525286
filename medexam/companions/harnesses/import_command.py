"""`medexam import`: results of other harnesses as runs, without asking a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from medexam.toolkit.commands import (
    ImportedRun,
    ImportSettings,
    JsonOption,
    RunsDirOption,
    Terminal,
    default_runs_dir,
    print_json,
    print_notice,
    print_tables,
    settings_as_flags,
    take_files,
)
from medexam.toolkit.tables import NONE, Table, percent


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
    imports_by_file = take_files(files, settings, settings.read_dataset(), runs_dir or default_runs_dir())
    imports = [entry for runs in imports_by_file for entry in runs]
    if as_json:
        print_json([_document(entry) for entry in imports])
    else:
        _print(imports)
    for entry in imports:
        print_notice(f"{entry.run.folder.path}")


def _document(entry: ImportedRun) -> dict[str, Any]:
    from medexam.toolkit.runs import run_document

    return {**run_document(entry.run), "imported": entry.account}


def _right(metrics: Any) -> str:
    """Return the share of right options in percent; the first measure of questions that are answered in words."""
    if metrics.right is not None:
        return percent(metrics.right / metrics.n) if metrics.n else NONE
    first = next(iter(metrics.measures.values()), None)
    return NONE if first is None else percent(first.value)


def _print(imports: list[ImportedRun]) -> None:
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
                _right(metrics),
                NONE if summary["stated"] is None else percent(summary["stated"]),
            )
        )
    headers = ("Run", "Model", "Matched", "Left out", "n", "Score, %", "By the harness, %")
    caption = (
        "Score: the share of right options, or the first measure of answers in words. By the harness: the score that "
        "its own file states, over all of its samples."
    )
    print_tables(Terminal(), [(Table("Imported", headers, tuple(rows), text_columns=4), caption)])
