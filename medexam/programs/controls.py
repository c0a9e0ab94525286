"""Controls: programs that answer without a model, to which every model's score is compared.

The blind choice and the longest option are those of Vilares and Gómez-Rodríguez (2019).
"""

import random
from collections.abc import Callable, Iterable
from typing import Any

import dspy

from medexam.programs.base import ProgramOutput
from medexam.questions import Question, check_question

Choice = Callable[[Question], int | ProgramOutput | None]
"""Of a question, the printed number of the chosen option, alone or with evidence; None leaves it unanswered."""


class Control(dspy.Module):
    """A program that asks no model: called with `question=`, it returns a `ProgramOutput` with the answer."""

    def __init__(self, choose: Choice) -> None:
        super().__init__()
        self._choose = choose

    def forward(self, question: Any) -> ProgramOutput:
        """Answer one question."""
        check_question(question)
        choice = self._choose(question)
        return choice if isinstance(choice, ProgramOutput) else ProgramOutput(answer=choice)

    async def aforward(self, question: Any) -> ProgramOutput:
        """Answer one question; nothing here waits."""
        return self.forward(question)


def random_choice(seed: int) -> Choice:
    """Choose uniformly over the options, by the seed and the question's key alone.

    So it is the same whichever questions are asked beside it and in whichever order.
    """
    return lambda question: random.Random(f"{seed}:{question.key}").choice(question.option_numbers)  # noqa: S311


def random_in_order(seed: int, questions: Iterable[Question]) -> Choice:
    """Draw one stream of random numbers over questions in their order; none for a question that is none of them."""
    stream = random.Random(seed)  # noqa: S311 - no secret
    choices = {question.key: stream.choice(question.option_numbers) for question in questions}
    return lambda question: choices.get(question.key)


def blind_choice(number: int) -> Choice:
    """Choose the same printed number always; none where the question has no such option."""
    return lambda question: number if number in question.option_numbers else None


def longest_choice(question: Question) -> int:
    """Choose the first of the longest options, in characters of the stored text (the control Length)."""
    return max(question.options, key=lambda option: len(option.text)).number
