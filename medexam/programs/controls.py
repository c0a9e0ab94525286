"""Controls: programs that answer without a model, to which every model's score is compared.

The blind choice and the longest option are those of Vilares and Gómez-Rodríguez (2019).
"""

import random
from collections.abc import Iterable

import dspy

from medexam.programs.program_output import ProgramOutput
from medexam.questions import Question, check_question


class Control(dspy.Module):
    """Base of the controls: called with `question=`, returns a `dspy.Prediction` with `answer`."""

    def choose(self, question: Question) -> int | None:
        """Return the printed number of the chosen option; None leaves the question unanswered."""
        raise NotImplementedError

    def forward(self, question: Question) -> ProgramOutput:
        """Answer one question."""
        return self.say(question)

    async def aforward(self, question: Question) -> ProgramOutput:
        """Answer one question; nothing here waits."""
        return self.say(question)

    def say(self, question: Question) -> ProgramOutput:
        """Return what both give."""
        check_question(question)
        return ProgramOutput(answer=self.choose(question), rationale=None, generations=[])


class RandomChoice(Control):
    """Uniform over the question's options.

    The choice depends on the seed and the question's key alone, so it is the same whichever questions are asked beside
    it and in whichever order.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def choose(self, question: Question) -> int:
        """Choose the same option for the same seed and question."""
        return random.Random(f"{self.seed}:{question.key}").choice(question.option_numbers)  # noqa: S311 - no secret


class RandomInOrder(Control):
    """One stream of random numbers over questions in their order; a question that is none of them stays unanswered."""

    def __init__(self, seed: int, questions: Iterable[Question]) -> None:
        super().__init__()
        stream = random.Random(seed)  # noqa: S311 - no secret
        self._choices = {question.key: stream.choice(question.option_numbers) for question in questions}

    def choose(self, question: Question) -> int | None:
        """Return what was drawn for the question."""
        return self._choices.get(question.key)


class BlindChoice(Control):
    """Always the same printed number; unanswered where the question has no such option."""

    def __init__(self, option: int) -> None:
        super().__init__()
        self.option = option

    def choose(self, question: Question) -> int | None:
        """Return the option's number, if the question has it."""
        return self.option if self.option in question.option_numbers else None


class Abstention(Control):
    """No answer to any question."""

    def choose(self, question: Question) -> None:
        """Choose none."""


class LongestChoice(Control):
    """The first of the longest options, in characters of the stored text (the control Length)."""

    def choose(self, question: Question) -> int:
        """Return the number of the longest option."""
        return max(question.options, key=lambda option: len(option.text)).number
