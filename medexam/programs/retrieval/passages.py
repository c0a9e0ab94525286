"""Retrieve-then-answer (the paper's section 3.2.2): any program, with passages before its question.

Which passages belong to a question is looked up once, before anything is asked; programs only ask for them by question.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from medexam.programs.base import AskingProgram, Steps, WrappingProgram
from medexam.programs.controls import Control
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.signatures import behind_passages
from medexam.tasks import Task

_LEAST = 200
"""Characters of passages below which none are shown."""


class PassageFinder(Protocol):
    """Finds the passages of a question."""

    def find(self, question: Question | Task) -> Sequence[Hit]:
        """The passages to show, most relevant first."""
        ...

    def find_per_option(self, question: Question) -> Mapping[int, Sequence[Hit]]:
        """Printed number of each option -> the passages found for the stem with that option."""
        ...


class WithPassages(WrappingProgram):
    """A program that sees passages before its question.

    Where they do not fit the model's context, they are cut from the end by halves; the question never is. A prediction
    carries `hits`, and `passages_cut`, the characters that were left out.
    """

    def __init__(self, program: AskingProgram, finder: PassageFinder) -> None:
        super().__init__(program)
        self._finder = finder
        for predictor in program.predictors():
            predictor.signature = behind_passages(predictor.signature)

    def steps(self, question: Question | Task) -> Steps:
        """The program's own steps, each with the passages; begun anew with fewer where they did not fit."""
        hits = list(self._finder.find(question))
        whole = "\n\n".join(hit.passage.text for hit in hits)
        shown = whole
        while True:
            try:
                said = yield from self.steps_with(question, passages=shown)
            except ContextWindowExceededError:
                if not shown:
                    raise
                shown = shown[: len(shown) // 2].rstrip() if len(shown) >= 2 * _LEAST else ""
            else:
                return dspy.Prediction(**said.toDict(), hits=hits, passages_cut=len(whole) - len(shown))


class OptionRelevance(Control):
    """The option whose best passage is the most relevant; of equal ones the first.

    Unanswered where no option finds a passage. The IR solver of Vilares and Gómez-Rodríguez (2019).
    """

    def __init__(self, finder: PassageFinder) -> None:
        super().__init__()
        self._finder = finder

    def choose(self, question: Question) -> int | None:
        """The number of that option."""
        best = self._best(question)
        return max(best, key=lambda number: best[number].score, default=None)

    def say(self, question: Question) -> dspy.Prediction:
        """The answer; `hits` holds the passage that decided, if any."""
        answer = self.choose(question)
        hits = [] if answer is None else [self._best(question)[answer]]
        return dspy.Prediction(answer=answer, rationale=None, generations=[], hits=hits)

    def _best(self, question: Question) -> dict[int, Hit]:
        found = self._finder.find_per_option(question)
        return {number: hits[0] for number, hits in found.items() if hits}
