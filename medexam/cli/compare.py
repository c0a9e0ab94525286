"""`medexam compare`: paired statistics of stored runs on the same questions, without asking a model."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.cli.options import JsonOption, RunsDirOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medexam.experiments.compare.languages import Consistency
    from medexam.experiments.compare.result import Comparison
    from medexam.experiments.compare.task_comparison import AnyComparison
    from medexam.experiments.store.run_folder import RunFolder

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
    from medexam.experiments.compare.ranking import mixed_notes
    from medexam.experiments.compare.runs import find_compared
    from medexam.experiments.store.paths import default_runs_dir, run_paths
    from medexam.experiments.store.stored_run import reading_warnings

    folders = find_compared(run_paths(runs, runs_dir or default_runs_dir()))
    for warning in reading_warnings(folders):
        sys.stderr.write(f"medexam: warning: {warning}\n")
    found: AnyComparison | Consistency
    if any(folder.read_record().cell.dataset.holds_tasks for folder in folders):
        from medexam.cli.compare_tasks import compare_tasks

        found = compare_tasks(folders, as_json=as_json, markdown=markdown, languages=languages)
    elif languages:
        from medexam.cli.compare_languages import compare_languages

        found = compare_languages(folders, as_json=as_json, markdown=markdown)
    else:
        found = _compare_exams(folders, as_json=as_json, markdown=markdown)
    for line in found.corrected:
        sys.stderr.write(f"medexam: {line}\n")
    for note in mixed_notes(found.runs):
        sys.stderr.write(f"medexam: warning: {note}\n")
    if track or tracking_uri is not None:
        from medexam.experiments.track.comparisons import track_comparison
        from medexam.experiments.track.store import default_tracking_uri

        uri = tracking_uri or default_tracking_uri(runs_dir or folders[0].path.resolve().parent)
        mlflow_run_id = track_comparison(found, tracking_uri=uri)
        sys.stderr.write(f"the comparison is MLflow run {mlflow_run_id}, sent to {uri}\n")


def _compare_exams(folders: "Sequence[RunFolder]", *, as_json: bool, markdown: Path | None) -> "Comparison":
    """Print the comparison and write what is asked for."""
    from medexam.experiments.compare.result import comparison_document
    from medexam.experiments.compare.runs import compare_runs

    comparison = compare_runs(folders)
    if markdown is not None:
        from medexam.experiments.report.comparison_markdown import write_paired_report

        write_paired_report(comparison, markdown)
        sys.stderr.write(f"wrote {markdown}\n")
    if as_json:
        sys.stdout.write(json.dumps(comparison_document(comparison), ensure_ascii=False, indent=2) + "\n")
    else:
        _print(comparison)
    return comparison


def _print(comparison: "Comparison") -> None:
    from medexam.cli.views.comparison import print_comparison
    from medexam.experiments.report.comparison_tables import SHOWN_PAIRS, build_comparison_tables, headline, verdicts

    said = verdicts(comparison)
    if len(comparison.pairs) > SHOWN_PAIRS:
        said.insert(0, "--markdown FILE and --json hold the breakdowns by discipline and year.")
    print_comparison(comparison, headline(comparison), build_comparison_tables(comparison), said)
