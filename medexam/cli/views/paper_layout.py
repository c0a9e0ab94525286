"""`medexam report --layout`: stored runs in the tables of a paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medexam.cli.views.output import print_json, write_file
from medexam.cli.views.runs import print_ranking_notes, print_tables

if TYPE_CHECKING:
    from medexam.experiments.store.stored_run import ExamRun


def print_layout(
    runs: "Sequence[ExamRun]", layout: str, markdown: Path | None, latex: Path | None, *, as_json: bool
) -> None:
    """Print the tables of the paper that `layout` names, as JSON if asked; write them as Markdown and in LaTeX."""
    from medexam.experiments.compare.ranking import ranking_notes
    from medexam.experiments.report.papers.narrow import build_paper_tables
    from medexam.experiments.report.papers.paper import load_paper
    from medexam.experiments.report.papers.paper_tables import paper_tables, render_paper_latex, render_paper_report

    tables = paper_tables(runs, load_paper(layout))
    if markdown is not None:
        write_file(render_paper_report(tables, ranking_notes(runs)), markdown)
    if latex is not None:
        write_file(render_paper_latex(tables, ranking_notes(runs)), latex, "--latex")
    if as_json:
        print_json([table.document() for table in tables])
        return
    from medexam.cli.terminal import Terminal

    console = Terminal()
    print_tables(console, build_paper_tables(tables, console.width))
    print_ranking_notes(console, runs)


def check_layout(layout: str | None) -> str | None:
    """Return the layout as it was named; raises `SpecError` if no paper has this name."""
    from medexam.experiments.report.papers.paper import load_paper

    if layout is not None:
        load_paper(layout)
    return layout
