"""What `medexam run --debug` prints of one question of each cell."""

from medexam.cli.items import print_prediction
from medexam.event_loop import background_loop
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.plan.plans import Plan
from medexam.experiments.report.shown import Terminal
from medexam.experiments.run.runner import ask_one


def debug_plan(plan: Plan) -> None:
    """Ask the first pending question of each cell, or the first one if none is pending, and print all that happened."""
    console = Terminal()
    for planned in plan.runs:
        question = next(iter(planned.pending or planned.question_set.questions))
        console.print(f"{planned.label}: {question.key}", style="bold cyan", markup=False)
        print_prediction(
            console, background_loop().run(ask_one(planned, question, RunProgress([planned], disable=True)))
        )
    console.print("None of this was stored.")
