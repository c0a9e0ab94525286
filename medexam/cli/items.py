"""A question and its prediction on the terminal: the right answer marked, and each call as it was sent."""

import json
from typing import Any

from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.plan.plans import Plan
from medexam.experiments.report.shown import Terminal
from medexam.experiments.run.runner import ask_one
from medexam.predictions import Prediction
from medexam.predictions.prediction import ModelCall
from medexam.process import background_loop
from medexam.questions import Item, Task

LEFT_OUT = {"question", "program", "spec_digest", "calls", "replied"}
"""Fields that say which run the answer belongs to, as the line above does, and those that are shown apart."""


def print_prediction(console: Terminal, prediction: Prediction | None) -> None:
    """Print a prediction; None says that its question is pending."""
    if prediction is None:
        console.print("pending: it was not asked yet")
        return
    for number, call in enumerate(prediction.calls, start=1):
        heading = f"Call {number} of {len(prediction.calls)}" if len(prediction.calls) > 1 else "Call"
        console.print(f"\n{heading}", style="bold", markup=False)
        _print_call(console, call)
    console.print("\nAnswer", style="bold", markup=False)
    document = prediction.to_json()
    if traceback := prediction.failure and prediction.failure.traceback:
        fault = {name: value for name, value in document["failure"].items() if name != "traceback"}
        document = {**document, "failure": fault, "traceback": traceback.rstrip()}
    _print_fields(console, {name: value for name, value in document.items() if name not in LEFT_OUT})


def _print_call(console: Terminal, call: ModelCall) -> None:
    for message in call.messages:
        words = f"\n{message['content']}" if message["content"] else " (empty)"
        console.print(f"{message['role']}:{words}\n", markup=False, highlight=False)
    fields = call.model_dump(mode="json", exclude_none=True)
    if "text" in fields:
        fields["reply"] = fields.pop("text")
    _print_fields(console, {name: value for name, value in fields.items() if name != "messages"})


def _print_fields(console: Terminal, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        console.print(f"{name}:\n{text}\n" if "\n" in text else f"{name}: {text}", markup=False, highlight=False)


def plain_terminal() -> Terminal:
    """Return a terminal that prints texts as they are."""
    return Terminal(highlight=False, markup=False, soft_wrap=True)


def print_item(console: Terminal, item: Item, gold: Any) -> None:
    """Print key, exam, text and options of a question; a star stands before each answer that is right."""
    if isinstance(item, Task):
        console.print(f"{item.key}  {item.group}, {item.language}", style="bold cyan")
        for text in filter(None, (item.context, item.question)):
            console.print(text)
        console.print(f"* {' / '.join(gold.answers)}\n", style="green")
        return
    exam = item.exam
    subject = exam.discipline if exam.year is None else f"{exam.discipline} {exam.year}"
    console.print(f"{item.key}  {exam.name}, {subject}, {item.language}", style="bold cyan")
    if item.image is not None:
        console.print(f"(refers to the picture {item.image})", style="dim")
    console.print(item.asked)
    for option in item.options:
        right = gold.accepts(option.number)
        console.print(f"{'*' if right else ' '} {option.number}. {option.text}", style="green" if right else None)
    console.print()


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
