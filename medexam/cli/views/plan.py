"""What `medexam plan` prints: the cells of an experiment and a real prompt of each."""

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from medexam.cli.terminal import Terminal
from medexam.experiments.plan.cells import Plan
from medexam.experiments.plan.document import plan_document


def print_plan(plan: Plan) -> None:
    """The plan as a table, and the first question's prompt of each cell below it."""
    console = Terminal()
    table = Table(title=plan.name, title_justify="left")
    for name in ("program", "model", "data set", "language"):
        table.add_column(name)
    for name in ("questions", "pending", "calls"):
        table.add_column(name, justify="right")
    entries = plan_document(plan)
    for entry in entries:
        numbers = (f"{entry[name]:,}" for name in ("questions", "owed", "calls"))
        table.add_row(entry["program"], entry["model"] or "none", entry["dataset"], entry["language"], *numbers)
    console.print(table)
    for planned, entry in zip(plan.cells, entries, strict=True):
        turns = entry["prompt"]
        if turns:
            text = Text("\n\n").join(Text.assemble((f"{t['role']}\n", "bold"), t["content"]) for t in turns)
            console.print(Panel(text, title=planned.label, title_align="left"))
