"""A kind of program with a key of its own, `{kind: nth, place: 2}`: the option at a place."""

from typing import ClassVar, Literal

import dspy

from medexam.programs import ProgramContext, ProgramOutput
from medexam.specs import ProgramSpec


class NthSpec(ProgramSpec):
    """Choose the option at a place, without a model."""

    builder: ClassVar[str] = "medexam_toys.kind:build"
    kind: Literal["nth"] = "nth"
    place: int = 1
    """From 1; behind the last option nothing is chosen."""

    @property
    def label_words(self) -> list[str]:
        """Name the place in tables."""
        return [str(self.place)]


class Nth(dspy.Module):
    """Chooses the option at a place."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def forward(self, question) -> ProgramOutput:
        """Answer one question."""
        numbers = question.option_numbers
        return ProgramOutput(answer=numbers[self.place - 1] if self.place <= len(numbers) else None, rationale=None)

    async def aforward(self, question) -> ProgramOutput:
        """Answer one question; nothing here waits."""
        return self.forward(question)


def build(spec: NthSpec, _language: str, _context: ProgramContext) -> dspy.Module:
    """Build the program of a spec."""
    return Nth(spec.place)
