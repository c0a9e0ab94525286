"""Controls: programs that answer without a model, to which every model's score is compared.

The blind choice and the longest option are those of Vilares and Gómez-Rodríguez (2019). The files of `specs/kinds` name
what builds them, of a spec, the language of the questions and a `ProgramContext`.
"""

import random
from collections.abc import Callable
from typing import Any

import dspy

from medexam.errors import SpecError
from medexam.programs.base import keep_passages
from medexam.programs.retrieving import PassageFinder
from medexam.questions import Question, check_question

Choice = Callable[[Question], int | dspy.Prediction | None]
"""Of a question, the printed number of the chosen option, alone or with evidence; None leaves it unanswered."""


class Control(dspy.Module):
    """A program that asks no model: called with `question=`, it returns a `dspy.Prediction` with the answer."""

    def __init__(self, choose: Choice) -> None:
        super().__init__()
        self._choose = choose

    def forward(self, question: Any) -> dspy.Prediction:
        """Answer one question."""
        check_question(question)
        choice = self._choose(question)
        return choice if isinstance(choice, dspy.Prediction) else dspy.Prediction(answer=choice)

    async def aforward(self, question: Any) -> dspy.Prediction:
        """Answer one question; nothing here waits."""
        # DSPy warns of every `forward` that is called on an instance.
        return Control.forward(self, question)


def choose_at_random(spec: Any, *_: object) -> Control:
    """Choose uniformly over the options, by the seed and the question's key alone.

    So it is the same whichever questions are asked beside it and in whichever order.
    """
    return Control(lambda question: random.Random(f"{spec.seed}:{question.key}").choice(question.option_numbers))  # noqa: S311


def choose_in_order(spec: Any, _: object, context: Any) -> Control:
    """Draw one stream of random numbers over a split in its order; none for a question that is none of it."""
    stream = random.Random(spec.seed)  # noqa: S311 - no secret
    choices = {
        question.key: stream.choice(question.option_numbers)
        for question in context.needed("in_order", "the questions in their order")(spec.split)
    }
    return Control(lambda question: choices.get(question.key))


def choose_blindly(spec: Any, *_: object) -> Control:
    """Choose the same printed number always; none where the question has no such option."""
    return Control(lambda question: spec.option if spec.option in question.option_numbers else None)


def choose_longest(*_: object) -> Control:
    """Choose the first of the longest options, in characters of the stored text (the control Length)."""
    return Control(lambda question: max(question.options, key=lambda option: len(option.text)).number)


def abstain(*_: object) -> Control:
    """Choose nothing."""
    return Control(lambda _: None)


def choose_most_relevant(_spec: object, _language: object, context: Any) -> Control:
    """Choose the option whose best passage is the most relevant, of equal ones the first, and keep that passage.

    Unanswered where no option finds a passage. The IR solver of Vilares and Gómez-Rodríguez (2019).
    """
    finder: PassageFinder = context.needed("finder", "a finder of passages")

    def choose(question: Question) -> dspy.Prediction:
        best = {number: hits[0] for number, hits in finder.find_per_option(question).items() if hits}
        answer = max(best, key=lambda number: best[number].score, default=None)
        return dspy.Prediction(answer=answer, passages=() if answer is None else keep_passages([best[answer]]))

    return Control(choose)


def refuse_imported(spec: Any, *_: object) -> Control:
    """Refuse to ask what was imported."""
    raise SpecError(
        f"program.kind imported: its answers come from {spec.file}, so there is no model to ask; `medexam report` "
        "shows the run"
    )
