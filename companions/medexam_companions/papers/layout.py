"""`medexam report --layout`: stored runs in the tables of a paper."""

from collections.abc import Sequence
from pathlib import Path

from medexam.cli import Terminal, print_json, print_ranking_notes, print_tables, write_file
from medexam.experiments import ExamRun, ranking_notes
from medexam_companions.papers.narrow import build_paper_tables
from medexam_companions.papers.paper import load_paper
from medexam_companions.papers.paper_tables import paper_tables, render_paper_latex, render_paper_report


def print_layout(
    runs: Sequence[ExamRun], layout: str, markdown: Path | None, latex: Path | None, *, as_json: bool
) -> None:
    """Print the tables of the paper that `layout` names, as JSON if asked; write them as Markdown and in LaTeX."""
    tables = paper_tables(runs, load_paper(layout))
    if markdown is not None:
        write_file(render_paper_report(tables, ranking_notes(runs)), markdown)
    if latex is not None:
        write_file(render_paper_latex(tables, ranking_notes(runs)), latex, "--latex")
    if as_json:
        print_json([table.document() for table in tables])
        return
    console = Terminal()
    print_tables(console, build_paper_tables(tables, console.width))
    print_ranking_notes(console, runs)
