"""Tables, their numbers and their Markdown, safe for what models wrote."""

from medexam.experiments.report.escaping import heading
from medexam.experiments.report.markdown import join_markdown, render_table
from medexam.tables import NONE, Captioned, Table, coefficient, percent

__all__ = ["NONE", "Captioned", "Table", "coefficient", "heading", "join_markdown", "percent", "render_table"]
