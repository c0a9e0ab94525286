"""Tables, their numbers and their Markdown, safe for what models wrote."""

from medexam.experiments.report.escaping import disarm, heading, on_one_line
from medexam.experiments.report.markdown import join_markdown, render_table
from medexam.tables import NONE, Captioned, Table, coefficient, decimal, percent

__all__ = [
    "NONE",
    "Captioned",
    "Table",
    "coefficient",
    "decimal",
    "disarm",
    "heading",
    "join_markdown",
    "on_one_line",
    "percent",
    "render_table",
]
