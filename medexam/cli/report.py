"""`medexam report`: tables and plots from stored runs, scored anew without asking a model."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

RunsArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory.")
]


def report(
    runs: RunsArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Write plots (PNG) into this folder.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown.")] = None,
) -> None:
    """Show stored runs as tables and plots; scores them again, asks no model."""
    from medexam.experiments.baselines import contrast_runs
    from medexam.experiments.places import default_runs_dir, run_paths
    from medexam.experiments.rescoring import rescore
    from medexam.experiments.run_folder import find_runs

    stored = [rescore(folder) for folder in find_runs(run_paths(runs, default_runs_dir()))]
    contrasts = [] if as_json and markdown is None else contrast_runs(stored)
    if plots is not None:
        from medexam.experiments.plots import write_plots

        for path in write_plots(stored, plots):
            sys.stderr.write(f"wrote {path}\n")
    if markdown is not None:
        from medexam.experiments.markdown import write_report

        write_report(stored, markdown, contrasts)
        sys.stderr.write(f"wrote {markdown}\n")
    if as_json:
        from medexam.experiments.summary import run_document

        sys.stdout.write(json.dumps([run_document(run) for run in stored], ensure_ascii=False, indent=2) + "\n")
    else:
        from rich.console import Console

        from medexam.experiments.retrieval_tables import build_contrast_tables, build_retrieval_tables
        from medexam.experiments.run_tables import build_cost_tables, build_failure_table
        from medexam.experiments.score_tables import build_score_tables
        from medexam.experiments.tables import build_breakdowns, build_table

        console = Console()
        console.print(build_table(stored))
        if len(stored) == 1:
            run = stored[0]
            tables = (*build_breakdowns(run), *build_cost_tables(run))
            for table in (*tables, *build_score_tables(run), *build_retrieval_tables(run)):
                console.print(table)
        for table in build_contrast_tables(contrasts):
            console.print(table)
        for run in stored:
            failed = build_failure_table(run)
            if failed is not None:
                console.print(failed)
            if not run.complete:
                owed = run.metrics.failed + run.metrics.missing
                line = f"{run.title}: {owed} questions are owed; {run.folder.resume_command} asks them"
                console.print(line, highlight=False, markup=False, soft_wrap=True)
            for warning in run.record.warnings:
                console.print(f"Warning: {run.title}: {warning}", highlight=False, markup=False)
