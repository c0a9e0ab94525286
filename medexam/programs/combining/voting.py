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

from medexam.model_calls import Reading
from medexam.predictions import Prediction
from medexam.predictions.evidence.option_scores import OptionScores
from medexam.programs.base import AskingProgram, Call, ExamProgram, Step, Steps, WrappingProgram, advance, altered
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

    def read_again(self, question: Question, stored: Prediction, reading: Reading = "strict") -> ProgramOutput | None:
        """Read the votes in the stored replies, counted anew."""
        outcomes = read_each(self.program, [question] * self.samples, stored, reading)
        return None if outcomes is None else recount(outcomes).copy(orders=stored.orders)


def read_each(
    program: AskingProgram, questions: Sequence[Question], stored: Prediction, reading: Reading
) -> list[ProgramOutput] | None:
    """Read the stored replies to each of the questions that a program was asked in turn; None if one cannot be read."""
    replies = stored.generations
    if not replies or len(replies) % len(questions):
        return None
    count = len(replies) // len(questions)
    outcomes = []
    for place, question in enumerate(questions):
        own_replies = replies[place * count : (place + 1) * count]
        text = own_replies[-1].text
        # A reply that was guided behind its reasoning holds the reasoning too.
        fields = {"generations": own_replies, "reply": text, "rationale": text if count > 1 else None}
        outcome = program.read_again(question, stored.model_copy(update=fields), reading)
        if outcome is None:
            return None
        outcomes.append(outcome)
    return outcomes


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
        last_generation=best_outcome.last_generation or next(reversed(best_outcome.generations), None),
        keeps_replies=True,
        generations=[generation for outcome in outcomes for generation in outcome.generations],
    )


def recount(votes: Sequence[ProgramOutput]) -> ProgramOutput:
    """Return what votes that were read in stored replies make the answer, and the reasoning of the first with it."""
    answer = winner(votes)
    rationale = next((vote.rationale for vote in votes if vote.answer == answer), None)
    return ProgramOutput(answer=answer, rationale=rationale, votes=tuple(vote.answer for vote in votes))


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
