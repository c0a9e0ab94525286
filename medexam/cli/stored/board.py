"""`medexam board`: models over several benchmarks, from stored runs."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import JsonOption, LatexOption, RunsDirOption
from medexam.cli.views.output import check_endings


def board(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN...",
            autocompletion=complete_run,
            show_default=False,
            help="Run folders, folders of runs, or ids; all runs of the runs directory by default.",
        ),
    ] = None,
    as_json: JsonOption = False,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the board as Markdown.")] = None,
    latex: LatexOption = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that sorts by a click.")] = None,
    runs_dir: RunsDirOption = None,
) -> None:
    """Show models over several benchmarks: scores, mean rank, and what is missing; asks no model."""
    check_endings({"--markdown": markdown, "--latex": latex, "--html": html})
    from medexam.cli.stored.actions.board import show_board

    show_board(runs, runs_dir, markdown=markdown, latex=latex, html=html, as_json=as_json)
