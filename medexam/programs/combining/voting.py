"""Self-consistency: a question is asked several times, and the commonest legal answer is taken.

Wang et al. (2023), "Self-Consistency Improves Chain of Thought Reasoning in Language Models". The prompt is the same
each time, so a server with a prefix cache reads it once.
"""

import math
from collections import Counter
from collections.abc import Sequence

from medexam.predictions import OptionScores
from medexam.programs.base import ExamProgram, Run, SharedPrompt, WrappingProgram, asked_by
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Question

NO_VOTE = math.log(1e-9)
"""The score of an option without a vote: its share of the probability is 0 to nine decimals."""


class Voting(WrappingProgram):
    """A program that is asked `samples` times, each under a seed of its own.

    A prediction carries `votes`, the answer of each reply in order, and `scores`, the log of each option's share of the
    legal answers; None if there is no legal answer. Of options with as many votes, the likeliest on average is taken if
    the program weighs options, else the one that was answered first.
    """

    def __init__(self, program: ExamProgram, samples: int) -> None:
        super().__init__(program)
        self.samples = samples

    def calls_for(self, question: Question) -> int:
        """Count as many for each reply as the program's own."""
        return self.samples * self.program.calls_for(question)

    async def answer(self, question: Question) -> ProgramOutput:
        """Ask the program for each reply: the first under the model's seed, the others under the next ones.

        If one request brings several replies to a prompt, those that the runs begin with are asked for at once.
        """
        shared = SharedPrompt(self.samples)
        answers = []
        for number in range(self.samples):
            with asked_by(seeds_later=number, seed_step=self.samples, run=Run(shared, number)):
                answers.append(await self.program.answer(question))
        return count_votes(question, answers, answers)


def count_votes(question: Question, votes: Sequence[ProgramOutput], outcomes: Sequence[ProgramOutput]) -> ProgramOutput:
    """Make one output of several, each of which has as many of the votes."""
    answer = winner(votes)
    first_place = next((place for place, vote in enumerate(votes) if vote.answer == answer), 0)
    best_outcome = outcomes[first_place * len(outcomes) // len(votes)]
    return best_outcome.copy(
        answer=answer,
        scores=shares(question, votes),
        votes=tuple(vote.answer for vote in votes),
    )


def winner(outcomes: Sequence[ProgramOutput]) -> int | None:
    """Return the commonest answer, or None; of equals the likeliest if all have `scores`, else the first."""
    votes = Counter(outcome.answer for outcome in outcomes if outcome.answer is not None)
    if not votes:
        return None
    winners = [number for number, count in votes.items() if count == max(votes.values())]
    all_scores: list[OptionScores] = [outcome.scores for outcome in outcomes if outcome.scores is not None]
    first: int = winners[0]
    if len(winners) == 1 or len(all_scores) < len(outcomes):
        return first
    likeliest: int = max(winners, key=lambda number: math.fsum(scores.option_scores[number] for scores in all_scores))
    return likeliest


def shares(question: Question, outcomes: Sequence[ProgramOutput]) -> OptionScores | None:
    """Return the log of each option's share of the legal answers; None if there is none."""
    votes = Counter(outcome.answer for outcome in outcomes if outcome.answer is not None)
    if not votes:
        return None
    total = votes.total()
    shares = {
        number: math.log(votes[number] / total) if votes[number] else NO_VOTE for number in question.option_numbers
    }
    return OptionScores(
        option_scores=shares,
        score_unit="log of the share of votes",
        score_norm="votes",
        read_by="votes",
        read_why=f"{total} of {len(outcomes)} replies hold a legal answer",
    )
