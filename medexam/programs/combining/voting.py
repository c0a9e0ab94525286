"""Self-consistency: a question is asked several times, and the commonest legal answer is taken.

Wang et al. (2023), "Self-Consistency Improves Chain of Thought Reasoning in Language Models". The prompt is the same
each time, so a server with a prefix cache reads it once.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from medexam.predictions import OptionScores
from medexam.programs.base import Call, ExamProgram, Step, Steps, WrappingProgram, advance, altered
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

    def steps(self, question: Question) -> Steps:
        """Yield the program's own steps for each reply: the first under the model's seed, the others under the next
        ones.

        If one request brings several replies to a prompt, all are asked for at once as long as they are asked the same.
        """
        runs = [self.program.steps(question) for _ in range(self.samples)]
        next_steps = [advance(run) for run in runs]
        while _shares_prompt(next_steps):
            try:
                replies = yield replace(next_steps[0], samples=self.samples)
            except ContextWindowExceededError as error:
                next_steps = [advance(run, error) for run in runs]
                continue
            next_steps = [advance(run, replies.completions[place]) for place, run in enumerate(runs)]
            break
        answers = []
        for number, (run, step) in enumerate(zip(runs, next_steps, strict=True)):
            answers.append((yield from altered(run, partial(_seeded, number, self.samples), step)))
        return count_votes(question, answers, answers)


def _shares_prompt(calls: Sequence[Step]) -> bool:
    """Return whether all are the same call, of one of DSPy's own predictors, and its model reads a prompt once."""
    first, *others = calls
    if not isinstance(first, Call) or not isinstance(first.predictor, dspy.Predict):
        return False
    lm = first.predictor.lm or dspy.settings.lm
    return getattr(lm, "shares_prompts", False) and all(call == first for call in others)


def _seeded(number: int, samples: int, call: Call) -> Call:
    """Return a call of reply `number` under a seed that no other of the `samples` has."""
    return replace(call, seeds_later=number + samples * call.seeds_later)


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
