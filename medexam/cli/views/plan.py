"""What `medexam plan` prints: the cells of an experiment and a real prompt of each."""

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from medexam.cli.terminal import Terminal
from medexam.experiments.plan.cells import Plan
from medexam.experiments.plan.document import plan_document
from medexam.formatting import percent
from medexam.metrics.paired.power import detectable_difference

FLIPPED = 0.3
"""Share of the questions that one of two runs has right and the other has not, before any run tells it."""


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
    if said := describe_power(plan):
        console.print(said)
    for planned, entry in zip(plan.cells, entries, strict=True):
        turns = entry["prompt"]
        if turns:
            text = Text("\n\n").join(Text.assemble((f"{t['role']}\n", "bold"), t["content"]) for t in turns)
            console.print(Panel(text, title=planned.label, title_align="left"))


def describe_power(plan: Plan) -> str | None:
    """How small a difference between two runs of the plan its questions show; None for a single run."""
    sizes = [len(cell.question_set.questions) for cell in plan.cells if cell.benchmark.right_or_wrong]
    if len(sizes) < 2:
        return None
    difference, n = detectable_difference(min(sizes), FLIPPED), f"{min(sizes):,} questions"
    if difference is None:
        return f"{n} are too few to tell two runs apart."
    return (
        f"{n} show a difference of {percent(difference)} percentage points between two runs four times in five, if 3 "
        "of 10 are right in one run alone (McNemar's test)."
    )
