"""Demonstrations chosen for each question: the solved ones nearest to it, not the same for all.

Which those are is looked up before anything is asked; programs only ask for them by question.
"""

from collections.abc import Sequence
from typing import Protocol

import dspy

from medexam.predictions import Prediction
from medexam.programs.base import Call, ExamProgram, Steps
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
        """The demonstrations to show, the nearest last, next to the question."""
        ...


class WithNearest(ExamProgram):
    """A program that shows each question the solved ones nearest to it.

    The demonstrations of its predictors are those that are chosen from.
    """

    def __init__(self, program: ExamProgram, finder: DemonstrationFinder) -> None:
        super().__init__(program.adapter)
        self.program = program
        self.finder = finder

    def calls_for(self, question: Question) -> int:
        """As many as the program's own."""
        return self.program.calls_for(question)

    def read_again(self, question: Question, stored: Prediction) -> dspy.Prediction | None:
        """As the program's own does."""
        return self.program.read_again(question, stored)

    def steps(self, question: Question) -> Steps:
        """The program's own steps, each with these demonstrations."""
        shown = list(self.finder.find(question))
        steps = self.program.steps(question)
        call = next(steps)
        while True:
            said = yield Call(call.predictor, {**call.inputs, "demos": shown})
            try:
                call = steps.send(said)
            except StopIteration as finished:
                return finished.value
