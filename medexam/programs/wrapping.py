"""Programs that ask another one, and change how its calls are made: again, in other orders, behind other texts.

- Self-consistency: Wang et al. (2023), "Self-Consistency Improves Chain of Thought Reasoning in Language Models"
- Orders of the options: Zheng et al. (2024), "Large Language Models Are Not Robust Multiple Choice Selectors"
- Passages: retrieve-then-answer, the paper's section 3.2.2
"""

import math
import random
from collections.abc import Awaitable, Callable
from itertools import permutations
from typing import Any, TypeVar

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from medexam.programs.base import NO_SCORES, WAY, AskingProgram, ExamProgram, asked_by, keep_passages
from medexam.programs.retrieving import PassageFinder, shown_text
from medexam.programs.steps.branches import combine
from medexam.questions import Option, Question, Task
from medexam.specs.programs.words import Orders

_LEAST = 200
"""Characters of passages below which none are shown."""
P = TypeVar("P")
Order = tuple[int, ...]
"""The printed numbers of the options as they are shown: the second is that of the option in the second place."""


class WrappingProgram(ExamProgram):
    """Base of the programs that ask another one, which may answer in words too."""

    def __init__(self, program: AskingProgram) -> None:
        super().__init__()
        self.program = program

    def calls_for(self, question: Any) -> int:
        """Count as many as the program's own."""
        return self.program.calls_for(question)


class Voting(WrappingProgram):
    """A program that is asked `samples` times in each order of a question's options, each time under a seed of its own;
    the commonest legal answer is taken.

    A prediction carries `votes`, the answer of each reply in order as the number that the exam prints, and
    `option_scores`, the log of each option's share of the legal answers; none if there is no legal answer. Of options
    with as many votes, the likeliest on average is taken, then the one that was answered first. Where orders differ, it
    carries `orders`, each of which has as many votes, and `calls` hold the numbers that were shown.
    """

    def __init__(self, program: AskingProgram, samples: int, orders: Orders) -> None:
        super().__init__(program)
        self.samples, self.orders = samples, orders

    def calls_for(self, question: Question) -> int:
        """Count as many for each reply as the program's own."""
        return self.samples * len(orders_of(question, self.orders)) * self.program.calls_for(question)

    async def aforward(self, question: Question) -> dspy.Prediction:
        """Ask the program in each order: first under the model's seed, then under the next ones. Its demonstrations and
        passages stay as they are.
        """
        orders = orders_of(question, self.orders)
        outcomes: list[dspy.Prediction] = []
        votes: list[dspy.Prediction] = []
        for order in orders:
            # Until a call is made the question is the exam's, which finds the passages.
            shown: dict[str, Any] = {} if self.orders == "given" else {"question": shown_in(question, order)}
            for number in range(self.samples):
                with asked_by(seeds_later=number, **shown):
                    outcomes.append(await self.program.aforward(question))
                votes.append(_printed_vote(question, order, outcomes[-1]))
        counted = combine(question, votes, "vote")
        first_place = next((place for place, vote in enumerate(votes) if vote.answer == counted.answer), 0)
        if "option_scores" in counted:
            why = f"{sum(vote is not None for vote in counted.votes)} of {len(votes)} replies hold a legal answer"
            counted = counted.copy(read_by="votes", read_why=why)
        outcome = outcomes[first_place].copy(**{**NO_SCORES, **counted})
        return outcome if self.orders == "given" else outcome.copy(orders=tuple(orders))


def show_nearest(program: AskingProgram, finder: Any) -> AskingProgram:
    """Have a program show each question, of its demonstrations, those that `finder.find(question)` lists."""
    for _, part in program.named_sub_modules(AskingProgram):
        part.nearest = finder
    return program


def find_nearest(program: dspy.Module) -> Any:
    """Find what chooses the demonstrations of a program, or of one in it; None if nothing does."""
    return next((part.nearest for _, part in program.named_sub_modules(AskingProgram) if part.nearest), None)


class BehindText(WrappingProgram):
    """A program that sees a text before its question.

    Where it does not fit the model's context, it is cut from the end by halves; the question never is. A prediction
    carries `passages_cut`, the characters that were left out, and `passages` where the text is that of passages found.
    """

    def __init__(self, program: AskingProgram, finder: PassageFinder | None, name: str = "passages") -> None:
        """Make the program: `finder` finds a question's passages; without one, the step's field `name` is shown."""
        super().__init__(program)
        self._finder, self._name = finder, name
        for predictor in program.predictors():
            predictor.signature = behind_passages(predictor.signature)

    def _read(self, question: Question | Task) -> Any:
        return WAY.get().given.fields[self._name] if self._finder is None else list(self._finder.find(question))

    async def aforward(self, question: Question | Task) -> dspy.Prediction:
        """Ask the program behind the text, or behind as much of it as fits."""
        value = self._read(question)

        async def ask(excerpt: str) -> dspy.Prediction:
            with asked_by(passages=excerpt):
                return await self.program.aforward(question)

        outcome = await fitted(shown_text(value), ask)
        return outcome if self._finder is None else outcome.copy(passages=keep_passages(value))


def behind_passages(signature: Any) -> Any:
    """Return the signature with passages that stand before the question."""
    return signature.prepend("passages", dspy.InputField(desc="passages that may help, most relevant first"), str)


async def fitted(text: str, ask: Callable[[str], Awaitable[P]]) -> P:
    """Return what `ask` makes of a text, asked anew with a shorter one while it does not fit the model's context.

    It is cut from the end by halves; the output carries `passages_cut`, how many characters that were. Raises
    `ContextWindowExceededError` where even no text does not fit.
    """
    excerpt = text
    while True:
        try:
            output: Any = await ask(excerpt)
        except ContextWindowExceededError:
            if not excerpt:
                raise
            excerpt = excerpt[: len(excerpt) // 2].rstrip() if len(excerpt) >= 2 * _LEAST else ""
        else:
            fitting: P = output.copy(passages_cut=len(text) - len(excerpt))
            return fitting


def orders_of(question: Question, orders: Orders) -> list[Order]:
    """Return the orders in which the question is shown; the exam's own is the first, but where they are drawn."""
    numbers = question.option_numbers
    match orders:
        case "cyclic":
            return [numbers[turn:] + numbers[:turn] for turn in range(len(numbers))]
        case "reversed":
            return [numbers, numbers[::-1]]
        case "given":
            return [numbers]
    return _draw(question, int(orders.removeprefix("random")))


def shown_in(question: Question, order: Order) -> Question:
    """Return the question with its options' texts in `order`; numbers stay in their places, and its key the same."""
    texts = {option.number: option.text for option in question.options}
    places = zip(question.option_numbers, order, strict=True)
    return question.model_copy(update={"options": tuple(Option(number, texts[source]) for number, source in places)})


def _draw(question: Question, count: int) -> list[Order]:
    numbers = list(question.option_numbers)
    generator = random.Random(f"17/{question.key}")  # noqa: S311 - nothing secret
    if math.factorial(len(numbers)) <= 5040:
        all_orders = list(permutations(numbers))
        return generator.sample(all_orders, min(count, len(all_orders)))
    distinct_orders: dict[Order, None] = {}
    while len(distinct_orders) < count:
        distinct_orders[tuple(generator.sample(numbers, len(numbers)))] = None
    return list(distinct_orders)


def _printed_vote(question: Question, order: Order, outcome: dspy.Prediction) -> dspy.Prediction:
    printed: dict[int | None, int | None] = {None: None, **dict(zip(question.option_numbers, order, strict=True))}
    vote = dspy.Prediction(answer=printed[outcome.answer])
    if (scores := outcome.get("option_scores")) is not None:
        vote.option_scores = {printed[number]: score for number, score in scores.items()}
    return vote
