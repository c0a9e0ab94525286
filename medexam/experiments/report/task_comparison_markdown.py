"""A comparison of runs that answer in words, in Markdown: what `medexam compare --markdown` writes and MLflow shows."""

from medexam.experiments.compare.task_comparison import TaskComparison
from medexam.experiments.report.comparison_markdown import render_comparison
from medexam.experiments.report.task_comparison_tables import (
    task_group_tables,
    task_headline,
    task_overall_tables,
    task_verdicts,
)


def paired_task_report(comparison: TaskComparison) -> str:
    """What was compared, what may be said of it, the tables, and where the runs lie."""
    lines, said = task_headline(comparison), task_verdicts(comparison)
    tables = [*task_overall_tables(comparison), *task_group_tables(comparison)]
    return render_comparison(comparison, lines, said, tables)
