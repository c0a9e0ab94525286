"""What `medexam run --debug` prints: one question of each cell, its calls as they come, and its prediction."""

import json
from typing import Any

from medexam.cli.terminal import Terminal
from medexam.cli.views.prediction import print_prediction
from medexam.experiments.plan.cells import Plan
from medexam.experiments.run.debugging import ask_one
from medexam.serve.network.event_loop import background_loop


def debug_plan(plan: Plan) -> None:
    """Ask the first pending question of each cell, or the first one if none is pending, and print all that happens."""
    console = Terminal()
    for planned in plan.cells:
        question = next(iter(planned.pending or planned.question_set.questions))
        console.print(f"{planned.label}: {question.key}", style="bold cyan", markup=False)
        calls: list[dict[str, Any]] = []

        def show(call: dict[str, Any], calls: list[dict[str, Any]] = calls) -> None:
            calls.append(call)
            _print_call(console, len(calls), call)

        prediction = background_loop().run(ask_one(planned, question, show))
        document = {name: value for name, value in prediction.to_json().items() if name != "generations"}
        print_prediction(console, prediction, document)
    console.print("None of this was stored.")


def _print_call(console: Terminal, number: int, call: dict[str, Any]) -> None:
    console.print(f"\nCall {number}", style="bold", markup=False)
    for message in call["messages"]:
        console.print(f"[{message['role']}]\n{message['content']}\n", markup=False, highlight=False)
    for name, value in call.items():
        if name != "messages":
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            console.print(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}", markup=False, highlight=False)
