"""Tables, their numbers and their Markdown, safe for what models wrote."""

from medexam.experiments.report.dataset_tables import length_tables
from medexam.experiments.report.escaping import disarm, heading, on_one_line
from medexam.experiments.report.markdown import captioned, join_markdown, render_table
from medexam.experiments.report.shown import Block, print_blocks
from medexam.experiments.report.tables import LONG_NAME, table_runs
from medexam.tables import NONE, Captioned, Table, coefficient, decimal, percent
from medexam.text import nearest

__all__ = [
    "LONG_NAME",
    "NONE",
    "Block",
    "Captioned",
    "Table",
    "captioned",
    "coefficient",
    "decimal",
    "disarm",
    "heading",
    "join_markdown",
    "length_tables",
    "nearest",
    "on_one_line",
    "percent",
    "print_blocks",
    "render_table",
    "table_runs",
]
