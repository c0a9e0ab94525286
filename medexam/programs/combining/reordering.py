"""The same question with its options in several orders: each order is asked, and the commonest answer is taken.

A model that prefers a place answers otherwise when the options move. Zheng et al. (2024), "Large Language Models Are
Not Robust Multiple Choice Selectors", and Wang et al. (2024), "Large Language Models are not Fair Evaluators".
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import dspy

from medexam.predictions import Prediction, Reading
from medexam.programs.base import Call, ExamProgram, Steps, WrappingProgram, altered
from medexam.programs.combining.voting import shares, winner
from medexam.programs.likelihood import OptionScores
from medexam.programs.orders import Order, orders_of, original, shown_in
from medexam.questions import Question
from medexam.specs.programs.orders import Orders


class Reordered(WrappingProgram):
    """A program that is asked once for each order of a question's options.

    A prediction carries `orders`, and `votes`, the answers in their order as the numbers that the exam prints; each
    order has as many of them. `generations` hold the numbers that were shown. Votes count as those of `Voting` do.
    """

    def __init__(self, program: ExamProgram, orders: Orders) -> None:
        super().__init__(program)
        self.orders = orders

    def calls_for(self, question: Question) -> int:
        """As many for each order as the program's own."""
        return len(orders_of(question, self.orders)) * self.program.calls_for(question)

    def steps(self, question: Question) -> Steps:
        """The program's own steps for each order; its demonstrations and passages stay as they are."""
        orders = orders_of(question, self.orders)
        said: list[dspy.Prediction] = []
        for order in orders:
            one = yield from altered(self.program.steps(question), partial(_show, shown_in(question, order)))
            said.append(one)
        votes = _votes(question, orders, said)
        answer = winner(votes)
        each = len(votes) // len(orders)
        first = next((place for place, vote in enumerate(votes) if vote.answer == answer), 0)
        told = said[first // each]
        own = {
            "answer": answer,
            "scores": shares(question, votes),
            "votes": tuple(vote.answer for vote in votes),
            "orders": tuple(orders),
            "told": told.get("told") or told.generations[-1],
            "traced": True,
            "generations": [generation for one in said for generation in one.generations],
        }
        return dspy.Prediction(**{**told.toDict(), **own})

    def read_again(self, question: Question, stored: Prediction, reading: Reading = "strict") -> dspy.Prediction | None:
        """The answers in the stored replies of each order, counted anew."""
        replies, orders = stored.generations, stored.orders
        if not replies or not orders or len(replies) % len(orders):
            return None
        each = len(replies) // len(orders)
        said = []
        for turn, order in enumerate(orders):
            own = replies[turn * each : (turn + 1) * each]
            # A reply that was guided behind its reasoning holds the reasoning too.
            rationale = own[-1].text if each > 1 else None
            one = stored.model_copy(update={"generations": own, "reply": own[-1].text, "rationale": rationale})
            read = self.program.read_again(shown_in(question, order), one, reading)
            if read is None:
                return None
            said.append(read)
        votes = _votes(question, orders, said)
        answer = winner(votes)
        rationale = next((vote.rationale for vote in votes if vote.answer == answer), None)
        return dspy.Prediction(
            answer=answer, rationale=rationale, votes=tuple(vote.answer for vote in votes), orders=orders
        )


def _show(shown: Question, call: Call) -> Call:
    """The call with the question as it is shown. Until here it is the exam's, by which passages were looked up."""
    return replace(call, inputs={**call.inputs, "question": shown}) if "question" in call.inputs else call


def _votes(question: Question, orders: Sequence[Order], said: Sequence[dspy.Prediction]) -> list[dspy.Prediction]:
    """Every vote of every order, with the numbers that the exam prints."""
    return [vote for order, one in zip(orders, said, strict=True) for vote in _votes_of(question, order, one)]


def _votes_of(question: Question, order: Order, said: dspy.Prediction) -> Iterator[dspy.Prediction]:
    if said.get("votes") is not None:
        for vote in said.votes:
            yield dspy.Prediction(answer=original(question, order, vote), scores=None, rationale=said.rationale)
        return
    scores: OptionScores | None = said.get("scores")
    if scores is not None:
        as_shown = (scores.option_scores[number] for number in question.option_numbers)
        scores = replace(scores, option_scores=dict(zip(order, as_shown, strict=True)))
    yield dspy.Prediction(answer=original(question, order, said.answer), scores=scores, rationale=said.rationale)
