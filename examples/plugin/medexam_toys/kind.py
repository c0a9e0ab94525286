"""A kind of program with a key of its own, `{kind: nth, place: 2}`: the option at a place."""

from pathlib import Path
from typing import Any

import dspy

from medexam.programs import ProgramContext

NTH = Path(__file__).with_name("nth.yaml")
"""The kind's file, which the entry point names."""


class Nth(dspy.Module):
    """Chooses the option at a place."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def forward(self, question) -> dspy.Prediction:
        """Answer one question."""
        numbers = question.option_numbers
        return dspy.Prediction(answer=numbers[self.place - 1] if self.place <= len(numbers) else None, rationale=None)

    async def aforward(self, question) -> dspy.Prediction:
        """Answer one question; nothing here waits."""
        return self.forward(question)


def build(spec: Any, _language: str, _context: ProgramContext) -> dspy.Module:
    """Build the program of a spec."""
    return Nth(spec.place)
