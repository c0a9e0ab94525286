"""What `medexam plan` prints of an experiment, and `medexam run --debug` of one question of each cell."""

from rich.panel import Panel
from rich.text import Text

from medexam.cli.items import print_prediction
from medexam.event_loop import background_loop
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.plan.cells import Plan
from medexam.experiments.plan.document import cells_table, describe_prices, describe_records, plan_document
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.run.runner import ask_one
from medexam.measures.margins import FLIPPED, detectable_difference
from medexam.tables import percent


def print_plan(plan: Plan) -> None:
    """Print the plan as a table, and the first question's prompt of each cell below it."""
    console = Terminal()
    entries = plan_document(plan)
    print_blocks(console, [cells_table(plan.name, entries)])
    if note := describe_power(plan):
        console.print(note)
    if note := describe_prices(plan.cells):
        console.print(note)
    for planned, entry in zip(plan.cells, entries, strict=True):
        if entry["calls"] and (calls := entry.get("calls_by_model")):
            counts = ", ".join(f"{model} at most {count:,}" for model, count in calls.items())
            console.print(f"Calls of {planned.label}: {counts}.", markup=False, highlight=False)
    for line in describe_records(plan.cells):
        console.print(line, markup=False, highlight=False)
    for planned, entry in zip(plan.cells, entries, strict=True):
        for warning in entry["warnings"]:
            # The others stand on stderr, as before a run.
            if warning not in planned.warnings:
                console.print(f"Warning: {warning}", markup=False, highlight=False)
        messages = entry["prompt"]
        if messages:
            text = Text("\n\n").join(Text.assemble((f"{t['role']}\n", "bold"), t["content"]) for t in messages)
            console.print(Panel(text, title=planned.label, title_align="left"))


def describe_power(plan: Plan) -> str | None:
    """Describe how small a difference between two runs of the plan its questions show; None for a single run."""
    sizes = [len(cell.question_set.questions) for cell in plan.cells if cell.benchmark.right_or_wrong]
    if len(sizes) < 2:
        return None
    difference, n = detectable_difference(min(sizes), FLIPPED), f"{min(sizes):,} questions"
    if difference is None:
        return f"{n} are too few to detect a difference between two runs."
    return (
        f"With {n} you will usually detect only differences above {percent(difference)} percentage points between two "
        "runs (80 % power by McNemar's test, if 3 of 10 are right in one run alone)."
    )


def debug_plan(plan: Plan) -> None:
    """Ask the first pending question of each cell, or the first one if none is pending, and print all that happened."""
    console = Terminal()
    for planned in plan.cells:
        question = next(iter(planned.pending or planned.question_set.questions))
        console.print(f"{planned.label}: {question.key}", style="bold cyan", markup=False)
        print_prediction(console, background_loop().run(ask_one(planned, question)))
    console.print("None of this was stored.")
