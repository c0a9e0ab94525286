"""`medexam report`: tables and plots from stored runs, scored anew without asking a model."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.options import JsonOption
from medexam.cli.report_options import Layout, ReportOptions
from medexam.errors import SpecError

RunsArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory.")
]


def report(
    runs: RunsArgument,
    as_json: JsonOption = False,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Write plots (PNG) into this folder.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one page with tables, pictures and every question (HTML)."),
    ] = None,
    layout: Annotated[
        Layout | None,
        typer.Option(help="The tables of a paper in the place of our own: `paper`, HEAD-QA v2's; `headqa-v1`."),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP=W", help="Rank runs that answer in words by a mean over groups; may be repeated."),
    ] = None,
) -> None:
    """Show stored runs as tables and plots; scores them again, asks no model."""
    from medexam.experiments.store.paths import default_runs_dir, run_paths
    from medexam.experiments.store.run_folder import find_runs

    options = ReportOptions(as_json, plots, markdown, html, layout, parse_weights(weight or []))
    folders = find_runs(run_paths(runs, default_runs_dir()))
    answered_in_words = [folder for folder in folders if folder.read_record().cell.dataset.holds_tasks]
    if not answered_in_words:
        from medexam.cli.report_exams import report_exams

        report_exams(folders, options)
    elif len(answered_in_words) == len(folders):
        from medexam.cli.report_tasks import report_tasks

        report_tasks(folders, options)
    else:
        raise SpecError(
            "some of these runs answer exams and others answer in words, which no table holds together: report the "
            f"ones apart from the others, such as {answered_in_words[0].name}"
        )


def parse_weights(pairs: list[str]) -> dict[str, float]:
    """`GROUP=WEIGHT` pairs; raises `SpecError` for what is none."""
    weights = {}
    for pair in pairs:
        group, _, weight = pair.partition("=")
        if group in weights:
            raise SpecError(f"--weight gives {group} twice: give each group one weight")
        try:
            weights[group] = float(weight)
        except ValueError:
            raise SpecError(f"--weight {pair}: give GROUP=WEIGHT, such as short=2") from None
    return weights
