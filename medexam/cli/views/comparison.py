"""How `medexam compare` prints what it found, whatever the questions are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from medexam.experiments.compare.result import Compared
    from medexam.experiments.report.tables import TerminalTable
    from medexam.experiments.store.stored_run import AnyMetrics


def print_comparison(
    comparison: "Compared[AnyMetrics]", lines: Sequence[str], tables: "Sequence[TerminalTable]", said: Sequence[str]
) -> None:
    """`lines` on what was compared, the tables, what may be `said` of it, and what is pending in each run."""
    from rich.console import Console

    console = Console()
    for line in lines:
        console.print(line, highlight=False, markup=False)
    for table in tables:
        console.print(table)
    for line in said:
        console.print(line, highlight=False, markup=False)
    for run, pending in zip(comparison.runs, comparison.pending, strict=True):
        if pending:
            line = f"{run.title}: {pending} questions are pending; {run.folder.resume_command} asks them"
            console.print(line, highlight=False, markup=False, soft_wrap=True)
