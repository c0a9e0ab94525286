"""The same question with its options in several orders: each order is asked, and the commonest answer is taken.

A model that prefers a place answers otherwise when the options move. Zheng et al. (2024), "Large Language Models Are
Not Robust Multiple Choice Selectors", and Wang et al. (2024), "Large Language Models are not Fair Evaluators".
"""

from collections.abc import Iterator
from dataclasses import replace

from medexam.programs.base import ExamProgram, WrappingProgram, asked_by
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

    async def answer(self, question: Question) -> ProgramOutput:
        """Ask the program in each order; its demonstrations and passages stay as they are."""
        orders = orders_of(question, self.orders)
        outcomes: list[ProgramOutput] = []
        votes: list[ProgramOutput] = []
        for order in orders:
            # Until a call is made the question is the exam's, which finds the passages.
            with asked_by(question=shown_in(question, order)):
                outcomes.append(await self.program.answer(question))
            votes += _votes_of(question, order, outcomes[-1])
        return count_votes(question, votes, outcomes).copy(orders=tuple(orders))


def _votes_of(question: Question, order: Order, outcome: ProgramOutput) -> Iterator[ProgramOutput]:
    """Yield every vote of an order, with the numbers that the exam prints."""
    if outcome.votes is not None:
        for vote in outcome.votes:
            yield ProgramOutput(answer=original(question, order, vote), scores=None, rationale=outcome.rationale)
        return
    scores = outcome.scores
    if scores is not None:
        order_scores = (scores.option_scores[number] for number in question.option_numbers)
        scores = replace(scores, option_scores=dict(zip(order, order_scores, strict=True)))
    yield ProgramOutput(answer=original(question, order, outcome.answer), scores=scores, rationale=outcome.rationale)
