"""Demonstrations chosen for each question: the solved ones nearest to it, not the same for all.

Which those are is looked up before anything is asked; programs only ask for them by question.
"""

from collections.abc import Sequence
from typing import Protocol

import dspy

from medexam.programs.base import ExamProgram, WrappingProgram, asked_by
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Question


class DemonstrationFinder(Protocol):
    """Finds which of many solved questions to show before one."""

    @property
    def k(self) -> int:
        """How many are shown."""
        ...

    @property
    def encoder(self) -> str:
        """What measures nearness."""
        ...

    def find(self, question: Question) -> Sequence[dspy.Example]:
        """Find the demonstrations to show, the nearest last, next to the question."""
        ...


class WithNearest(WrappingProgram):
    """A program that shows each question the solved ones nearest to it.

    The demonstrations of its predictors are those that are chosen from.
    """

    def __init__(self, program: ExamProgram, finder: DemonstrationFinder) -> None:
        super().__init__(program)
        self.finder = finder

    async def answer(self, question: Question) -> ProgramOutput:
        """Ask the program, with these demonstrations."""
        with asked_by(demos=list(self.finder.find(question))):
            return await self.program.answer(question)


def find_nearest(program: dspy.Module) -> DemonstrationFinder | None:
    """Find what chooses the demonstrations of a program, also of one asked several times; None if nothing does."""
    while isinstance(program, WrappingProgram):
        if isinstance(program, WithNearest):
            return program.finder
        program = program.program
    return None
