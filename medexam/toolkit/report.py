"""What the report is made of: Markdown, blocks and tables of runs, safe for what models wrote."""

from medexam.experiments.report.dataset_tables import length_tables
from medexam.experiments.report.escaping import disarm, heading, on_one_line
from medexam.experiments.report.latex import render_latex
from medexam.experiments.report.markdown import captioned, join_markdown, render_table
from medexam.experiments.report.run_tables import cost_tables
from medexam.experiments.report.shown import Block, print_blocks
from medexam.experiments.report.tables import LONG_NAME, table_runs

__all__ = [
    "LONG_NAME",
    "Block",
    "captioned",
    "cost_tables",
    "disarm",
    "heading",
    "join_markdown",
    "length_tables",
    "on_one_line",
    "print_blocks",
    "render_latex",
    "render_table",
    "table_runs",
]
