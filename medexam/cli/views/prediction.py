"""A prediction as text: its fields, a line each, and the traceback of a module that raised."""

import json
from typing import Any

from medexam.cli.terminal import Terminal
from medexam.predictions import Prediction

LEFT_OUT = {"schema", "question", "program", "spec_digest"}
"""Fields of a stored answer that say which run it belongs to, as the line above it does."""


def print_prediction(console: Terminal, prediction: Prediction | None, document: dict[str, Any]) -> None:
    """Print the fields of a prediction; None says that its question is pending."""
    if prediction is None:
        console.print("pending: it was not asked yet")
        return
    traceback = prediction.failure and prediction.failure.traceback
    if traceback:
        fault = {name: value for name, value in document["failure"].items() if name != "traceback"}
        document = {**document, "failure": fault, "traceback": traceback.rstrip()}
    for name, value in document.items():
        if name in LEFT_OUT:
            continue
        text = value if isinstance(value, str) else _render(value)
        console.print(f"{name}:\n{text}\n" if "\n" in text else f"{name}: {text}")


def _render(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
