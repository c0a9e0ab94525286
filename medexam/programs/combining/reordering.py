"""The same question with its options in several orders: each order is asked, and the commonest answer is taken.

A model that prefers a place answers otherwise when the options move. Zheng et al. (2024), "Large Language Models Are
Not Robust Multiple Choice Selectors", and Wang et al. (2024), "Large Language Models are not Fair Evaluators".
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from medexam.programs.base import Call, ExamProgram, Steps, WrappingProgram, altered
from medexam.programs.combining.voting import count_votes
from medexam.programs.orders import Order, orders_of, original, shown_in
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Question
from medexam.specs.programs.orders import Orders


class Reordered(WrappingProgram):
    """A program that is asked once for each order of a question's options.

    A prediction carries `orders`, and `votes`, the answers in their order as the numbers that the exam prints; each
    order has as many of them. `calls` hold the numbers that were shown. Votes count as those of `Voting` do.
    """

    def __init__(self, program: ExamProgram, orders: Orders) -> None:
        super().__init__(program)
        self.orders = orders

    def calls_for(self, question: Question) -> int:
        """Count as many for each order as the program's own."""
        return len(orders_of(question, self.orders)) * self.program.calls_for(question)

    def steps(self, question: Question) -> Steps:
        """Yield the program's own steps for each order; its demonstrations and passages stay as they are."""
        orders = orders_of(question, self.orders)
        outcomes: list[ProgramOutput] = []
        for order in orders:
            outcome = yield from altered(self.program.steps(question), partial(_show, shown_in(question, order)))
            outcomes.append(outcome)
        return count_votes(question, _votes(question, orders, outcomes), outcomes).copy(orders=tuple(orders))


def _show(question: Question, call: Call) -> Call:
    """Return the call with the question as it is shown; until here it is the exam's, which finds the passages."""
    return replace(call, inputs={**call.inputs, "question": question}) if "question" in call.inputs else call


def _votes(question: Question, orders: Sequence[Order], outcomes: Sequence[ProgramOutput]) -> list[ProgramOutput]:
    """Return every vote of every order, with the numbers that the exam prints."""
    return [
        vote for order, outcome in zip(orders, outcomes, strict=True) for vote in _votes_of(question, order, outcome)
    ]


def _votes_of(question: Question, order: Order, outcome: ProgramOutput) -> Iterator[ProgramOutput]:
    if outcome.votes is not None:
        for vote in outcome.votes:
            yield ProgramOutput(answer=original(question, order, vote), scores=None, rationale=outcome.rationale)
        return
    scores = outcome.scores
    if scores is not None:
        order_scores = (scores.option_scores[number] for number in question.option_numbers)
        scores = replace(scores, option_scores=dict(zip(order, order_scores, strict=True)))
    yield ProgramOutput(answer=original(question, order, outcome.answer), scores=scores, rationale=outcome.rationale)
