"""`medexam board`: models over several benchmarks, from stored runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import BibtexOption, JsonOption, LatexOption, RunsDirOption, TrustOption
from medexam.cli.views.output import check_endings, print_json, write_bibtex, write_file
from medexam.cli.views.runs import read_current


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
    bibtex: BibtexOption = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page that sorts by a click.")] = None,
    runs_dir: RunsDirOption = None,
    trust: TrustOption = False,  # noqa: ARG001 - its callback has done it
) -> None:
    """Show models over several benchmarks: scores, mean rank, mean z, and what is missing; asks no model."""
    check_endings({"--markdown": markdown, "--latex": latex, "--html": html, "--bibtex": bibtex})
    from medexam.cli.terminal import Terminal
    from medexam.experiments.report.leaderboard import make_leaderboard
    from medexam.experiments.report.shown import print_blocks
    from medexam.experiments.store.paths import default_runs_dir, run_paths
    from medexam.experiments.store.run_folder import find_runs

    root = runs_dir or default_runs_dir()
    stored_runs = read_current(find_runs(run_paths(runs, root) if runs else [root]))
    leaderboard = make_leaderboard(stored_runs)
    write_bibtex([run.folder for run in stored_runs], bibtex)
    if markdown is not None:
        write_file(leaderboard.markdown(), markdown)
    if latex is not None:
        write_file(leaderboard.latex(), latex, "--latex")
    if html is not None:
        from medexam.experiments.report.leaderboard.page import write_leaderboard

        write_leaderboard(leaderboard, html)
        sys.stderr.write(f"wrote {html}\n")
    if as_json:
        print_json(leaderboard.document())
    else:
        print_blocks(Terminal(), leaderboard.blocks())
