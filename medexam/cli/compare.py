"""`medexam compare`: paired statistics of stored runs on the same questions, without asking a model."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.cli.options import JsonOption, RunsDirOption

if TYPE_CHECKING:
    from medexam.experiments.comparison import Comparison

RunsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN RUN...",
        help="The baseline, then what to compare with it: run folders, folders of runs, or ids in the runs directory.",
    ),
]


def compare(
    runs: RunsArgument,
    as_json: JsonOption = False,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as Markdown.")] = None,
    languages: Annotated[
        bool, typer.Option("--languages", help="Two runs in two languages: right in both, in one, in neither.")
    ] = False,
    track: Annotated[bool, typer.Option("--track", help="Send the comparison to MLflow.")] = False,
    tracking_uri: Annotated[
        str | None,
        typer.Option(help="MLflow store or server, with --track; by default the store beside the first run."),
    ] = None,
    runs_dir: RunsDirOption = None,
) -> None:
    """Compare stored runs with the first one on the questions that all have scored; asks no model."""
    from medexam.experiments.comparing import compare_runs, find_compared
    from medexam.experiments.comparison import comparison_document
    from medexam.experiments.places import default_runs_dir, run_paths

    folders = find_compared(run_paths(runs, runs_dir or default_runs_dir()))
    if languages:
        from medexam.cli.compare_languages import print_languages

        print_languages(folders, as_json=as_json)
        return
    comparison = compare_runs(folders)
    if markdown is not None:
        from medexam.experiments.comparison_markdown import write_paired_report

        write_paired_report(comparison, markdown)
        sys.stderr.write(f"wrote {markdown}\n")
    if as_json:
        sys.stdout.write(json.dumps(comparison_document(comparison), ensure_ascii=False, indent=2) + "\n")
    else:
        _print(comparison)
    if track or tracking_uri is not None:
        from medexam.experiments.comparison_tracking import track_comparison
        from medexam.experiments.mlflow_store import default_tracking_uri

        beside = comparison.runs[0].folder.path.resolve().parent
        uri = tracking_uri or default_tracking_uri(runs_dir or beside)
        mlflow_run_id = track_comparison(comparison, tracking_uri=uri)
        sys.stderr.write(f"the comparison is MLflow run {mlflow_run_id}, sent to {uri}\n")


def _print(comparison: "Comparison") -> None:
    from rich.console import Console

    from medexam.experiments.comparison_tables import SHOWN_PAIRS, build_comparison_tables, headline, verdicts

    console = Console()
    for line in headline(comparison):
        console.print(line, highlight=False, markup=False)
    for table in build_comparison_tables(comparison):
        console.print(table)
    if len(comparison.pairs) > SHOWN_PAIRS:
        console.print("--markdown FILE and --json hold the breakdowns by discipline and year.", highlight=False)
    for line in verdicts(comparison):
        console.print(line, highlight=False, markup=False)
    for run, owed in zip(comparison.runs, comparison.owed, strict=True):
        if owed:
            line = f"{run.title}: {owed} questions are owed; {run.folder.resume_command} asks them"
            console.print(line, highlight=False, markup=False, soft_wrap=True)
